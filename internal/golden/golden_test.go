package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	type inner struct {
		Names []string
		Any   any
	}
	number := 3
	for want, v := range map[string]any{
		`nil`:                            nil,
		`{}`:                             inner{},
		`{Names: []}`:                    inner{Names: []string{}},
		`{Names: ["a", "b"], Any: 1m0s}`: inner{[]string{"a", "b"}, time.Minute},
		`{A: func, B: chan}`: struct {
			A func()
			B chan int
			C func()
		}{A: func() {}, B: make(chan int)},
		`[nil, 3]`:                        []any{nil, &number},
		"{\"a\": true, \"b\": nil}":       map[string]any{"b": []string(nil), "a": true},
		"[`{\"a\":1}`, error \"no \\n\"]": []any{json.RawMessage(`{"a":1}`), errors.New("no \n")},
	} {
		assert.Equal(t, want, Text(v))
	}
}

// A difference is told with the line from which on, and a few lines of both.
func TestDifference(t *testing.T) {
	was := here
	defer func() { here = was }()
	here = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(here, "testdata"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(here, "testdata", "a.golden"), []byte("1\n2\n3\n4\n5\n6\n7\n8"), 0o600))
	const how = "\n--- after a deliberate change: go test -run '^TestDifference$' -update, and read what has changed"
	for got, want := range map[string]string{
		"1\n2\n3\n4\n5\n6\n7\n8":    "",
		"1\n2\nx\n4\n5\n6\n7\n8":    "testdata/a.golden differs from line 3 on:\n3\n4\n5\n6\n7\n--- now:\nx\n4\n5\n6\n7" + how,
		"1\n2\n3\n4\n5\n6\n7\n8\n9": "testdata/a.golden differs from line 9 on:\n\n--- now:\n9" + how,
		"1\n2":                      "testdata/a.golden differs from line 3 on:\n3\n4\n5\n6\n7\n--- now:\n" + how,
		"":                          "testdata/a.golden differs from line 1 on:\n1\n2\n3\n4\n5\n--- now:\n" + how,
	} {
		r := &recorder{TB: t}
		Compare(r, "a.golden", got)
		if want == "" {
			assert.Empty(t, r.said)
			continue
		}
		for line := range strings.Lines(want) {
			assert.Contains(t, r.said, strings.TrimSuffix(line, "\n"), "%q", got)
		}
	}
}

// recorder keeps what a test says that fails.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }
