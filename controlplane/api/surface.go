package api

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

const securityName = "felix"

// A surface is the routes of one listener and their document.
type surface struct {
	*API
	mux         *http.ServeMux
	huma        huma.API
	errorSchema *huma.Schema
	patterns    []string // of every route, "METHOD /path"
}

func newSurface(a *API) *surface {
	s := &surface{API: a, mux: http.NewServeMux()}
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	s.errorSchema = registry.Schema(reflect.TypeFor[ErrorBody](), true, "")
	format := huma.Format{Marshal: encode, Unmarshal: json.Unmarshal}
	s.huma = humago.New(s, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: "felix-controlplane", Version: "v1"},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					securityName: {Type: "http", Scheme: "bearer", BearerFormat: "JWT"},
				},
			},
		},
		// The second name is for content types that end in +json.
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{ourErrors},
	})
	return s
}

// HandleFunc adds a route to the mux and remembers it.
func (s *surface) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	s.patterns = append(s.patterns, pattern)
	s.mux.HandleFunc(pattern, handler)
}

// ServeHTTP serves the mux alone.
func (s *surface) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// document is the OpenAPI document of the routes.
func (s *surface) document() ([]byte, error) {
	// The framework lists its own form of errors, which no route answers with.
	for _, name := range []string{"ErrorModel", "ErrorDetail"} {
		delete(s.huma.OpenAPI().Components.Schemas.Map(), name)
	}
	return json.Marshal(s.huma.OpenAPI())
}

// encode writes names as they are, without the escapes that HTML would need.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// schemaName calls a type by its own name. Lists of what is listed are called
// after it.
func schemaName(t reflect.Type, hint string) string {
	return strings.ReplaceAll(huma.DefaultSchemaNamer(t, hint), "·", "")
}
