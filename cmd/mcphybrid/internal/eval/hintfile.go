package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/findability"
	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A hintTable has the hints of tools by server/tool. As JSON it is an object of that shape.
type hintTable map[string]hints.Hints

// parseHints reads a table. Its names are found as in [catalog.find].
func parseHints(path string, data []byte) (hintTable, error) {
	given, err := text.Members(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, text.JSONError(data, err))
	}
	table := make(hintTable)
	for _, m := range given {
		if _, twice := table[m.Name]; twice {
			return nil, fmt.Errorf("%s: tool %q is there twice", path, m.Name)
		}
		h, err := hints.Parse(m.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: tool %q: %w", path, m.Name, err)
		}
		table[m.Name] = h
	}
	return table, nil
}

// labelled returns a table with its hints at the labels of the tools that its names mean.
func (table hintTable) labelled(path string, c *catalog) (hintTable, error) {
	labelled := make(hintTable)
	for name, h := range table {
		tools, err := c.find(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, t := range tools {
			labelled[findability.Label(t)] = h
		}
	}
	return labelled, nil
}

// write writes a table to a file.
func (table hintTable) write(path string) error {
	data, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// An enricher has the hints of a table, which may be replaced.
type enricher struct{ table atomic.Pointer[hintTable] }

// LookupHints implements [hints.Enricher].
func (e *enricher) LookupHints(_ context.Context, t hints.Tool) (h hints.Hints, ok bool, err error) {
	if table := e.table.Load(); table != nil {
		h, ok = (*table)[t.Server()+"/"+t.OriginalName()]
	}
	return h, ok, nil
}

// use replaces the table, and waits until searches know the new one.
func (e *enricher) use(ctx context.Context, mgr *mcphybrid.Manager, table hintTable) error {
	e.table.Store(&table)
	return mgr.RefreshHints(ctx)
}

// The limits of a suggestion: it must fit into a hint.
const (
	maxWords = 12
	maxWord  = 32 // bytes
)

// suggestion returns the words that the wanted tool lacks, or by which it falls behind.
func suggestion(w findability.Why) (words []string) {
	said := make(map[string]bool)
	add := func(word string) {
		if word != "" && len(word) <= maxWord && !said[word] && len(words) < maxWords {
			said[word] = true
			words = append(words, word)
		}
	}
	for _, word := range w.Lacks {
		add(word)
	}
	for _, word := range w.Words {
		add(word.Word)
	}
	return words
}

// hint returns words as a hint. "For" is no word that a search counts.
func hint(words []string) string { return "For: " + strings.Join(words, ", ") }
