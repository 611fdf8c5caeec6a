package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// findRepeated notes the lines of data where servers are defined that are there more than once, in
// an object at one of the places. Where they can't be told for sure, it notes none.
func (doc *document) findRepeated(data []byte, places []string) {
	for i, s := range doc.servers {
		if s.times < 2 {
			continue
		}
		for _, place := range places {
			if lines := linesOf(data, place, s.name); len(lines) == s.times && doc.servers[i].lines == nil {
				doc.servers[i].lines = lines
			}
		}
	}
}

// linesOf returns the lines in which data, which is valid JSON, has the key name within an object
// that stands under a key that place ends in.
func linesOf(data []byte, place, name string) (lines []string) {
	type frame struct {
		isList bool
		under  string // the key of the object
		key    string // that was read last
		open   bool   // its value comes next
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var within []frame
	for {
		token, err := dec.Token()
		if err != nil {
			return lines
		}
		var in *frame
		if len(within) > 0 {
			in = &within[len(within)-1]
		}
		delim, _ := token.(json.Delim)
		switch {
		case delim == '}' || delim == ']':
			within = within[:len(within)-1]
			continue
		case in != nil && !in.isList && !in.open:
			in.key, in.open = token.(string), true // within an object, a key comes first
			if in.key == name && (in.under == place || strings.HasSuffix(place, "."+in.under)) {
				lines = append(lines, fmt.Sprint(1+bytes.Count(data[:dec.InputOffset()], []byte("\n"))))
			}
			continue
		}
		under := ""
		if in != nil {
			under, in.open = in.key, false
		}
		if delim != 0 {
			within = append(within, frame{isList: delim == '[', under: under})
		}
	}
}

// repeated says that a server is defined more than once, and where, if that is known.
func (s *member) repeated() error {
	if s.lines == nil {
		return fmt.Errorf("it is defined %d times", s.times)
	}
	lines := slices.Compact(slices.Clone(s.lines))
	last, where := len(lines)-1, "line "+lines[0]
	if last > 0 {
		where = "lines " + strings.Join(lines[:last], ", ") + " and " + lines[last]
	}
	return fmt.Errorf("it is defined %d times, in %s: keep one, or give each a name of its own", s.times, where)
}
