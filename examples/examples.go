// Package examples holds the real data that the demo and the tests of Felix
// run on.
package examples

import (
	"bytes"
	_ "embed"
	"iter"
)

//go:embed quakes.ndjson
var quakes []byte

// QuakeCount is the number of records in [Quakes].
const QuakeCount = 1707

// Quakes is one week of earthquakes (31 January to 7 February 2018), one JSON
// object a line in time order, each line ended by a newline. It is reduced
// from the public-domain feed of the U.S. Geological Survey. Each record names
// the network that reported it in "net", a natural routing key. The caller
// gets a copy of its own.
func Quakes() []byte { return bytes.Clone(quakes) }

// QuakeLines yields the records of [Quakes] in order, without their newlines.
// The slices are views of one copy made for this call.
func QuakeLines() iter.Seq[[]byte] {
	data := Quakes()
	return func(yield func([]byte) bool) {
		rest := data
		for len(rest) > 0 {
			line, after, _ := bytes.Cut(rest, []byte{'\n'})
			rest = after
			if !yield(line[:len(line):len(line)]) {
				return
			}
		}
	}
}
