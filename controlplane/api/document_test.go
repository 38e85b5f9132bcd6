package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type document struct {
	OpenAPI    string
	Info       struct{ Title, Version string }
	Paths      map[string]map[string]operation
	Components struct {
		Schemas         map[string]map[string]any
		SecuritySchemes map[string]any
	}
}

type operation struct {
	OperationID string `json:"operationId"`
	Summary     string
	Tags        []string
	Parameters  []struct {
		Name, In string
		Required bool
	}
	RequestBody *struct{ Content map[string]any }
	Responses   map[string]struct {
		Description string
		Content     map[string]struct{ Schema map[string]any }
	}
	Security []map[string][]string
}

func (r *rig) document() (document, []byte) {
	r.t.Helper()
	a := r.ok(200, "GET", "/v1/openapi.json", "", nil)
	var d document
	a.into(r.t, &d)
	return d, a.body
}

var pathParameter = regexp.MustCompile(`\{([^}]+)\}`)

func TestDocumentIsSound(t *testing.T) {
	d, text := newRig(t).document()
	if d.OpenAPI != "3.1.0" || d.Info.Title != "felix-controlplane" || d.Info.Version != "v1" || d.Components.SecuritySchemes["felix"] == nil {
		t.Fatalf("%+v %+v", d.Info, d.Components.SecuritySchemes)
	}
	if len(d.Components.Schemas) < 40 {
		t.Errorf("%d schemas", len(d.Components.Schemas))
	}
	// All references lead somewhere, and every schema is led to.
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	references(tree, func(ref string) {
		name, ok := strings.CutPrefix(ref, "#/components/schemas/")
		if !ok || d.Components.Schemas[name] == nil {
			t.Errorf("reference to %s leads nowhere", ref)
		}
		used[name] = true
	})
	for name := range d.Components.Schemas {
		if !used[name] {
			t.Errorf("schema %s is not used", name)
		}
	}
	ids := map[string]bool{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			where := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || len(op.Tags) != 1 {
				t.Errorf("%s: operationId %q, summary %q, tags %v", where, op.OperationID, op.Summary, op.Tags)
			}
			ids[op.OperationID] = true
			checkOperation(t, where, path, op)
		}
	}
}

func checkOperation(t *testing.T, where, path string, op operation) {
	t.Helper()
	var declared []string
	for _, p := range op.Parameters {
		if p.In == "path" {
			declared = append(declared, p.Name)
		}
	}
	for _, m := range pathParameter.FindAllStringSubmatch(path, -1) {
		if !slices.Contains(declared, m[1]) {
			t.Errorf("%s: path parameter %s is not declared", where, m[1])
		}
	}
	needs := []string{"500", "503"}
	if len(op.Security) > 0 {
		needs = append(needs, "401", "403")
	}
	if op.RequestBody != nil {
		needs = append(needs, "400", "413")
	}
	success := 0
	for status, response := range op.Responses {
		if strings.HasPrefix(status, "2") {
			success++
			continue
		}
		if ref := fmt.Sprint(response.Content["application/json"].Schema["$ref"]); ref != "#/components/schemas/ErrorBody" {
			t.Errorf("%s: %s answers with %s", where, status, ref)
		}
	}
	if success != 1 {
		t.Errorf("%s: %d statuses of success", where, success)
	}
	for _, status := range needs {
		if _, ok := op.Responses[status]; !ok {
			t.Errorf("%s: does not say that it answers %s", where, status)
		}
	}
}

func references(v any, found func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if ref, ok := inner.(string); ok && key == "$ref" {
				found(ref)
			}
			references(inner, found)
		}
	case []any:
		for _, inner := range v {
			references(inner, found)
		}
	}
}

// Every documented operation is routed: it is refused for what it lacks, and
// never as unknown.
func TestDocumentedOperationsAreRouted(t *testing.T) {
	r := newRig(t)
	d, _ := r.document()
	operations := 0
	for path, methods := range d.Paths {
		for method, op := range methods {
			operations++
			target := pathParameter.ReplaceAllString(path, "0")
			a := r.do(strings.ToUpper(method), target, "", nil)
			switch {
			case a.status == http.StatusMethodNotAllowed, a.status == 404 && strings.Contains(string(a.body), "no such route"):
				t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
			case len(op.Security) > 0 && a.status != 401:
				t.Errorf("%s %s: without a token it answers %d", method, path, a.status)
			}
			if _, ok := op.Responses[fmt.Sprint(a.status)]; !ok {
				t.Errorf("%s %s: answered %d, which is not documented", method, path, a.status)
			}
		}
	}
	// Control plane 4 has this many, with the later ones and bridges.
	if operations < 68 {
		t.Errorf("%d operations", operations)
	}
}

// The page shows every operation and loads nothing.
func TestDocsPage(t *testing.T) {
	r := newRig(t)
	d, _ := r.document()
	a := r.ok(200, "GET", "/docs", "", nil)
	page := string(a.body)
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || strings.Contains(page, "<script") || strings.Contains(page, "http://") || strings.Contains(page, "https://") {
		t.Error("the page loads or runs something")
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if !strings.Contains(page, `id="`+op.OperationID+`"`) {
				t.Errorf("%s %s is not on the page", method, path)
			}
		}
	}
}
