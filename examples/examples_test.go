package examples

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestQuakeLinesAreTheFile(t *testing.T) {
	var rebuilt bytes.Buffer
	count := 0
	for line := range QuakeLines() {
		var record struct {
			ID  string `json:"id"`
			Net string `json:"net"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("line %d: %v", count+1, err)
		}
		if record.ID == "" || record.Net == "" {
			t.Fatalf("line %d lacks id or net: %s", count+1, line)
		}
		rebuilt.Write(line)
		rebuilt.WriteByte('\n')
		count++
	}
	if count != QuakeCount {
		t.Errorf("%d records, want %d", count, QuakeCount)
	}
	if !bytes.Equal(rebuilt.Bytes(), Quakes()) {
		t.Error("the lines joined are not the file")
	}
}
