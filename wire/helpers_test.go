package wire

import (
	"encoding/binary"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

func u16(v uint16) []byte { return binary.BigEndian.AppendUint16(nil, v) }
func u32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// catalogue is every type newMessage knows, read from its source so that a test
// over it misses none.
func catalogue(t testing.TB) map[string]Message {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "json_catalogue.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]Message{}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				typ, err := strconv.Unquote(e.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				types[typ] = newMessage(typ)
			}
		}
		return true
	})
	if len(types) < 70 {
		t.Fatalf("only %d types in the catalogue", len(types))
	}
	return types
}
