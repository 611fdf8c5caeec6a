package search

import (
	"bytes"
	"compress/flate"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "pack the embedded texts anew")

// What is embedded says the same as the files that people read.
func TestPacked(t *testing.T) {
	for name, want := range map[string]string{
		"lexicon": withoutComments(t, "lexicon.txt"),
		"intents": withoutComments(t, "intents.txt"),
		"foreign": packForeign(t),
	} {
		if *update {
			var b bytes.Buffer
			w, err := flate.NewWriter(&b, flate.BestCompression)
			require.NoError(t, err)
			_, err = w.Write([]byte(want))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, os.WriteFile(name+".packed", b.Bytes(), 0o644))
		}
		packed, err := os.ReadFile(name + ".packed")
		require.NoError(t, err)
		assert.True(t, unpack(string(packed)) == want, "%s.txt and %s.packed differ: run go generate in this folder", name, name)
	}
}

func sourceLines(t *testing.T, file string) (lines []string) {
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	return slices.DeleteFunc(strings.Split(string(source), "\n"), func(line string) bool {
		return line == "" || line[0] == '#'
	})
}

func withoutComments(t *testing.T, file string) string {
	return strings.Join(sourceLines(t, file), "\n")
}

// foreignRow is one line of foreign.txt: the words of each language, folded.
type foreignRow struct {
	english []string
	cells   [][]string // by language
}

func foreignRows(t *testing.T) (languages []string, rows []foreignRow) {
	for i, line := range sourceLines(t, "foreign.txt") {
		var cells [][]string
		for cell := range strings.SplitSeq(line, "|") {
			var words []string
			for _, w := range strings.Fields(cell) {
				if i == 0 {
					languages = append(languages, w)
				}
				var a analyzer
				a.add([]byte(w))
				if w != "-" {
					require.NotEmpty(t, a.terms, "%s: %s is no word", line, w)
					words = append(words, string(a.bytes))
				}
			}
			cells = append(cells, words)
		}
		if i > 0 {
			rows = append(rows, foreignRow{strings.Fields(strings.Split(line, "|")[0]), cells[1:]})
		}
	}
	return languages[1:], rows
}

// packForeign returns the columns that unpackForeign reads. Words of one script
// share a column, so that each stands there once.
func packForeign(t *testing.T) string {
	_, rows := foreignRows(t)
	var columns [foreignScripts + 1][]string
	for _, row := range rows {
		var scripts [foreignScripts][]string
		for _, w := range slices.Concat(row.cells...) {
			if slices.ContainsFunc(row.english, func(e string) bool { return len(w) >= familyPrefix && strings.HasPrefix(e, w[:familyPrefix]) }) {
				continue // the ranker finds it anyway: they are relatives
			}
			s := scriptOf(w)
			scripts[s] = append(scripts[s], w)
		}
		for s, words := range scripts {
			slices.Sort(words)
			columns[s] = append(columns[s], strings.Join(slices.Compact(words), " "))
		}
		columns[foreignScripts] = append(columns[foreignScripts], strings.Join(row.english, " "))
	}
	var all []string
	for _, c := range columns {
		all = append(all, c...)
	}
	return strings.Join(all, "\n")
}

func scriptOf(word string) int {
	switch r := []rune(word)[0]; {
	case r < 0x400:
		return 0
	case r < 0x530:
		return 1
	case r >= 0xac00 && r <= 0xd7a3:
		return 2
	}
	return 3
}
