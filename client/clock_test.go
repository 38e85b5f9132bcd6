package client

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// wallTime are the methods that take a time's monotonic reading away, or answer
// without it. A client that compared what they give would wait for an hour, or not
// at all, when the machine's clock is set.
var wallTime = []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "Round", "Truncate", "UTC", "Local", "In", "Equal", "Compare", "MarshalBinary"}

// TestClientMeasuresOnlyWhatPasses: the client's own waits, pauses and deadlines
// are differences of readings of time.Now, which take no part in steps of the
// clock. Times of the wire are for the caller, and the one that goes out is the
// caller's.
func TestClientMeasuresOnlyWhatPasses(t *testing.T) {
	callers := map[string]int{"read.go UnixMicro": 1} // [Client.OffsetForTime]
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files, readings := token.NewFileSet(), 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil && x.Name == "time" {
				if sel.Sel.Name == "Now" {
					readings++
				}
				return true // a function of package time
			}
			for _, name := range wallTime {
				if use := e.Name() + " " + name; sel.Sel.Name == name {
					if callers[use]--; callers[use] < 0 {
						t.Errorf("%s: %s: compare readings of time.Now with Sub, Before or After", files.Position(sel.Pos()), name)
					}
				}
			}
			return true
		})
	}
	if readings < 10 {
		t.Errorf("%d readings of the clock found: this test does not see them", readings)
	}
}
