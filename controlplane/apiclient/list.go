package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
)

// A missingError names a field that every answer of its kind has.
type missingError struct{ field string }

func (e *missingError) Error() string { return fmt.Sprintf("the field %q is missing", e.field) }

// listPage is what one call of a listing asks for, and maxPages bounds a
// listing whose cursors never end.
const (
	listPage = "1000"
	maxPages = 10_000
)

// A page is one part of a listing. Listings of rules were bare arrays once, and
// still may be.
type page[T any] struct {
	Items *[]T
	Next  string
}

func (p *page[T]) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		p.Items = new([]T)
		return json.Unmarshal(data, p.Items)
	}
	var object struct {
		Items *[]T    `json:"items"`
		Next  *string `json:"next_cursor"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	if object.Items == nil {
		return &missingError{"items"}
	}
	p.Items = object.Items
	if object.Next != nil {
		p.Next = *object.Next
	}
	return nil
}

// list reads a listing to its end (control plane 2.3). The result is not nil.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	query = maps.Clone(query)
	if query == nil {
		query = make(url.Values)
	}
	query.Set("limit", listPage)
	all := []T{}
	for range maxPages {
		var p page[T]
		if err := c.get(ctx, path, query, &p); err != nil {
			return nil, err
		}
		if p.Items == nil { // the answer was null
			return nil, &AnswerError{Status: 200, What: (&missingError{"items"}).Error()}
		}
		all = append(all, *p.Items...)
		if p.Next == "" {
			return all, nil
		}
		query.Set("cursor", p.Next)
	}
	return nil, &AnswerError{Status: 200, What: "a listing without end"}
}
