package main

import (
	"bytes"
	"strings"
	"testing"
)

// The call that reaches its tool has a span, the refused one only an event.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string]int{
		`"Name": "execute_tool mcp_text__trim"`: 1,
		`"Name": "mcphybrid.events"`:            1,
		`"Name": "mcphybrid.duration"`:          1,
		"mcp_text__trim was not called":         1,
	} {
		if n := strings.Count(out.String(), want); n != times {
			t.Errorf("%q is there %d times, want %d:\n%s", want, n, times, out.String())
		}
	}
}
