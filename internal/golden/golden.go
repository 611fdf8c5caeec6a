// Package golden compares all that a test has seen with a file that a person can read.
package golden

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// here is the folder of the package that is tested, wherever a test goes.
var here, _ = os.Getwd()

// Compare fails if got is not what the file of that name in testdata has. With -update, it writes
// the file. After that, read what has changed: it must be right, not only stored.
func Compare(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join(here, "testdata", filepath.FromSlash(name))
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if string(want) == got {
		return
	}
	stored, seen := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	line := 0
	for line < min(len(stored), len(seen)) && stored[line] == seen[line] {
		line++
	}
	few := func(lines []string) string { return strings.Join(lines[line:min(len(lines), line+5)], "\n") }
	assert.Fail(t, fmt.Sprintf("testdata/%s differs from line %d on:\n%s\n--- now:\n%s\n--- after a deliberate change: go test -run '^%s$' -update, and read what has changed",
		name, line+1, few(stored), few(seen), strings.SplitN(t.Name(), "/", 2)[0]))
}

// Text returns all of v that is not zero, in one line. It tells an empty list from none,
// and uses no String method but those of durations.
func Text(v any) string { return text(reflect.ValueOf(v)) }

func text(v reflect.Value) string {
	if !v.IsValid() {
		return "nil"
	}
	if v.CanInterface() {
		switch v := v.Interface().(type) {
		case error:
			return fmt.Sprintf("error %q", v)
		case time.Duration:
			return v.String()
		case json.RawMessage:
			if v != nil {
				return "`" + string(v) + "`"
			}
		}
	}
	switch v.Kind() {
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	case reflect.Pointer, reflect.Interface:
		return text(v.Elem())
	case reflect.Func, reflect.Chan:
		return v.Kind().String()
	case reflect.Struct:
		var fields []string
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				fields = append(fields, v.Type().Field(i).Name+": "+text(v.Field(i)))
			}
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case reflect.Map:
		if v.IsNil() {
			return "nil"
		}
		members := make(map[string]string)
		for _, key := range v.MapKeys() {
			members[text(key)] = text(v.MapIndex(key))
		}
		var all []string
		for _, key := range slices.Sorted(maps.Keys(members)) {
			all = append(all, key+": "+members[key])
		}
		return "{" + strings.Join(all, ", ") + "}"
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return "nil"
		}
		var all []string
		for i := range v.Len() {
			all = append(all, text(v.Index(i)))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return fmt.Sprint(v)
}
