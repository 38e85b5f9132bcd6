package api

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// documentRoutes serve the OpenAPI document and a page that shows it (control
// plane 2.2). They come last, and are in the document themselves.
func (s *surface) documentRoutes() error {
	var document, page []byte
	s.static("openapi", "/v1/openapi.json", "The OpenAPI document of this API", "application/json", &document)
	s.static("docs", "/docs", "This API, for people", "text/html; charset=utf-8", &page)
	var err error
	if document, err = s.document(); err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	if page, err = docsPage(s.huma.OpenAPI()); err != nil {
		return fmt.Errorf("write the page of the API: %w", err)
	}
	return nil
}

// static serves what is made once. It is put on the mux by hand, because the
// framework writes JSON.
func (s *surface) static(id, path, summary, contentType string, content *[]byte) {
	schema := &huma.Schema{Type: huma.TypeString}
	if contentType == "application/json" {
		schema = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	}
	responses := s.errorResponses(route{})
	responses["200"] = &huma.Response{
		Description: "OK", Content: map[string]*huma.MediaType{contentType: {Schema: schema}},
	}
	s.huma.OpenAPI().AddOperation(&huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"system"}, Responses: responses,
	})
	s.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		// Nothing is loaded from anywhere, and nothing runs.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		// A client that left is no concern of ours.
		_, _ = w.Write(*content)
	})
}

// A docsOperation is one operation as the page shows it.
type docsOperation struct {
	ID, Method, Path, Summary, About string
	Public                           bool
	Query                            []string
	Body, Answer                     string // names of schemas
	Statuses                         []string
}

// docsPage renders the document as a page that loads and runs nothing.
func docsPage(doc *huma.OpenAPI) ([]byte, error) {
	tags := map[string][]docsOperation{}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if op != nil {
				tags[op.Tags[0]] = append(tags[op.Tags[0]], docsOf(path, op))
			}
		}
	}
	for _, ops := range tags {
		slices.SortFunc(ops, func(a, b docsOperation) int {
			return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
		})
	}
	var out bytes.Buffer
	err := docsTemplate().Execute(&out, struct {
		Title, Version string
		Tags           map[string][]docsOperation
		Schemas        map[string]*huma.Schema
	}{doc.Info.Title, doc.Info.Version, tags, doc.Components.Schemas.Map()})
	return out.Bytes(), err
}

func docsOf(path string, op *huma.Operation) docsOperation {
	d := docsOperation{
		ID: op.OperationID, Method: op.Method, Path: path, Summary: op.Summary, About: op.Description, Public: len(op.Security) == 0,
	}
	for _, p := range op.Parameters {
		if p.In == "query" {
			d.Query = append(d.Query, p.Name)
		}
	}
	if op.RequestBody != nil {
		d.Body = typeName(op.RequestBody.Content["application/json"].Schema)
	}
	for status, response := range op.Responses {
		d.Statuses = append(d.Statuses, status)
		if media := response.Content["application/json"]; media != nil && strings.HasPrefix(status, "2") {
			d.Answer = typeName(media.Schema)
		}
	}
	slices.Sort(d.Statuses)
	return d
}

// typeName is a schema in a word.
func typeName(s *huma.Schema) string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	case s.Type == huma.TypeArray:
		return "list of " + typeName(s.Items)
	case len(s.OneOf) > 0:
		var names []string
		for _, one := range s.OneOf {
			names = append(names, typeName(one))
		}
		return strings.Join(names, " or ")
	}
	return s.Type
}

func docsTemplate() *template.Template {
	return template.Must(template.New("docs").Funcs(template.FuncMap{"type": typeName}).Parse(docsHTML))
}
