package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// maxPage is the most records of a page.
const maxPage = 1000

// Paging are the query parameters of a list (control plane 2.3). Without any of
// them a list is whole.
type Paging struct {
	Limit  string `query:"limit" doc:"The most records of the page, up to 1000; a number, else it is ignored."`
	Cursor string `query:"cursor" maxLength:"4096" doc:"The next_cursor of the page before."`
}

func (p Paging) given() bool { return p.Limit != "" || p.Cursor != "" }

// A List is some or all records of a kind, sorted by name.
type List[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty" doc:"Where the next page begins; left out on the last."`
}

type listOut[T any] struct{ Body List[T] }

// pageOf cuts a sorted list. key names a record; names sort as the list does.
func pageOf[T any](items []T, p Paging, key func(T) string) (List[T], error) {
	if !p.given() {
		return List[T]{Items: items}, nil
	}
	limit, err := strconv.ParseUint(p.Limit, 10, 32)
	if err != nil || limit == 0 || limit > maxPage {
		limit = maxPage
	}
	after, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil {
		return List[T]{}, invalid("cursor: not one of ours; give back next_cursor as it came, or none for the first page")
	}
	out := List[T]{Items: []T{}}
	for _, item := range items {
		if p.Cursor != "" && key(item) <= string(after) {
			continue
		}
		if uint64(len(out.Items)) == limit {
			out.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(key(out.Items[limit-1])))
			break
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// joined makes a name of several parts that sorts as they do: no part holds a
// control character.
func joined(parts ...string) string { return strings.Join(parts, "\x00") }

// A bareList is written as an array where no page was asked for, and as a
// [List] where one was (control plane 2.3).
type bareList[T any] struct {
	List[T]
	paged bool
}

// MarshalJSON writes the one form or the other.
func (l bareList[T]) MarshalJSON() ([]byte, error) {
	if l.paged {
		return json.Marshal(l.List)
	}
	return json.Marshal(l.Items)
}

// Schema documents both forms.
func (bareList[T]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		r.Schema(reflect.TypeFor[[]T](), true, ""), r.Schema(reflect.TypeFor[List[T]](), true, ""),
	}, Description: "An array, or a page of it where limit or cursor was given."}
}

type bareListOut[T any] struct{ Body bareList[T] }

func bareListOf[T any](items []T, p Paging, key func(T) string) (*bareListOut[T], error) {
	l, err := pageOf(items, p, key)
	if err != nil {
		return nil, err
	}
	return &bareListOut[T]{bareList[T]{l, p.given()}}, nil
}

// numberOr reads a numeric query value; one that is none is ignored (control
// plane 2.6).
func numberOr(s string, otherwise uint64) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// created is the answer to a write that made something.
const created = http.StatusCreated
