package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What a Validator accepts in doubt is not certainly allowed.
func TestAllows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		schema, value string
		want          bool
	}{
		{`{"type":"object"}`, `{"a":1}`, true},
		{`{"type":"object","required":["b"]}`, `{"a":1}`, false},
		{`{"properties":{"a":{"format":"date"}}}`, `{"a":"2026-02-30"}`, false},
		{`{"properties":{"a":{"format":"date"}}}`, `{"a":"2026-02-28"}`, true},
		{`{"properties":{"a":{"pattern":"^(?!x)"}}}`, `{}`, false},
		{`{"properties":{"a":{"pattern":"^x"}}}`, `{"a":"x"}`, true},
		{`{"$ref":"https://example.com/x"}`, `{}`, false},
		{`{"type":"Object"}`, `{}`, false},
		{`{`, `{}`, false},
		{`{}`, `{`, false},
		{`{}`, `{"a":1,"a":1}`, false},
		{`{}`, `{"a":1e999999999}`, false},
		{`{"minimum":1e999999999}`, `{}`, false},
		{`{"properties":{"a":{"$dynamicRef":"#"}}}`, `{"a":{}}`, false},
		{`{}`, `{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, false},
	} {
		assert.Equal(t, test.want, Allows(json.RawMessage(test.schema))(json.RawMessage(test.value)), "%s %.100s", test.schema, test.value)
	}
}
