package adaptertest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented returns the rows of docs/runtimes.md that say what the task costs in a runtime,
// in the form of row.
func documented(t *testing.T, runtime string) (rows string) {
	text, err := os.ReadFile("../../docs/runtimes.md")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("with %d tools of ten servers", corpusTools))
	var disclosure string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] != "" { // it is that of the rows below too
			disclosure = strings.FieldsFunc(cells[0], func(r rune) bool { return r == ':' || r == ',' })[0]
		}
		if cells[2] == runtime {
			rows += fmt.Sprintf("| %s | %s | %s |\n", runtime, disclosure, strings.ReplaceAll(strings.Join(cells[3:], " | "), ",", ""))
		}
	}
	return rows
}
