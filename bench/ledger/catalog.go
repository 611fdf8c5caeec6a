package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A tool is one definition as its server wrote it.
type tool struct {
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// invented is where the tools stand that need no download.
const invented = "../testdata/corpus/tools.jsonl"

// leading has the servers that come first: those of testdata/catalog/mcp.json, by the names
// that testdata/catalog/README.md has for their lists.
var leading = []string{
	"filesystem", "everything", "memory", "github-legacy", "grafana", "playwright", "chrome-devtools",
	"kubernetes", "firecrawl", "circleci", "slack-legacy",
}

// A source is a list of tools that catalogs of any size are the beginning of.
type source struct {
	real     []tool // from lists outside of the project, or none
	from     string // says where real is from
	invented []tool
}

// readSource reads answers to tools/list, corpora, and the invented tools. The first two may
// be "".
func readSource(catalog, corpora, invented string) (*source, error) {
	s := &source{}
	var from []string
	if catalog != "" {
		tools, err := readCatalog(catalog)
		if err != nil {
			return nil, err
		}
		s.real = tools
		from = append(from, fmt.Sprintf("-catalog (%d tools)", len(tools)))
	}
	if corpora != "" {
		for _, dir := range strings.Split(corpora, ",") {
			tools, err := readCorpora(dir)
			if err != nil {
				return nil, err
			}
			s.real = append(s.real, tools...)
			from = append(from, fmt.Sprintf("-corpus %s (%d tools)", filepath.Base(dir), len(tools)))
		}
	}
	s.from = strings.Join(from, ", ")
	s.real = usable(s.real)
	tools, err := readLines(invented, "")
	s.invented = usable(tools)
	if err == nil && len(s.invented) == 0 {
		err = fmt.Errorf("%s: no tools", invented)
	}
	return s, err
}

func (s *source) String() string {
	if len(s.real) == 0 {
		return "Catalog: invented tools, those of testdata/corpus and copies of them."
	}
	return fmt.Sprintf("Catalog: %s, of which %d are usable and distinct, and then invented ones.", s.from, len(s.real))
}

// first returns n tools, all of a server together, and says what they are.
func (s *source) first(n int) (tools []tool, note string) {
	tools = slices.Clone(s.real[:min(n, len(s.real))])
	note = fmt.Sprintf("%d invented", n-len(tools))
	if len(tools) > 0 {
		note = fmt.Sprintf("%d from the lists, %s", len(tools), note)
	}
	for i := 0; len(tools) < n; i++ {
		tools = append(tools, copied(s.invented[i%len(s.invented)], i/len(s.invented)))
	}
	return slices.Concat(byServer(tools)...), note
}

// copied returns t for another customer, or t itself if copy is 0. A query with the words of a
// copy finds that one.
func copied(t tool, copy int) tool {
	if copy == 0 {
		return t
	}
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	word := ""
	for _, n := range []int{copy, copy / 7, copy / 3} {
		word += string(consonants[(copy+n)%len(consonants)]) + string(vowels[n%len(vowels)])
	}
	word += fmt.Sprint(copy)
	t.Server += "-" + word
	t.Name += "_" + word
	t.Description = "For " + word + ": " + t.Description
	return t
}

// byServer returns the tools of each server, servers in the order in which they come.
func byServer(tools []tool) (groups [][]tool) {
	at := make(map[string]int)
	for _, t := range tools {
		i, known := at[t.Server]
		if !known {
			i = len(groups)
			at[t.Server] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

func reversed(tools []tool) []tool {
	groups := byServer(tools)
	slices.Reverse(groups)
	return slices.Concat(groups...)
}

// readCatalog reads the answers to tools/list in a folder.
func readCatalog(dir string) ([]tool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s: no answers to tools/list", dir)
	}
	servers := make(map[string][]tool)
	order := slices.Clone(leading)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var answer struct {
			Server string
			Tools  []struct {
				Name, Description string
				InputSchema       json.RawMessage
			}
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if answer.Server == "" {
			answer.Server = strings.TrimSuffix(filepath.Base(file), ".json")
		}
		if !slices.Contains(order, answer.Server) {
			order = append(order, answer.Server)
		}
		for _, t := range answer.Tools {
			servers[answer.Server] = append(servers[answer.Server], tool{answer.Server, t.Name, t.Description, t.InputSchema})
		}
	}
	var tools []tool
	for _, name := range order {
		tools = append(tools, servers[name]...)
	}
	return tools, nil
}

// readCorpora reads the corpus in dir, or those in its folders.
func readCorpora(dir string) (tools []tool, err error) {
	paths, _ := filepath.Glob(filepath.Join(dir, "tools.jsonl"))
	if paths == nil {
		paths, _ = filepath.Glob(filepath.Join(dir, "*", "tools.jsonl"))
	}
	if paths == nil {
		return nil, fmt.Errorf("%s: no tools.jsonl, and no folder with one", dir)
	}
	for _, path := range paths {
		read, err := readLines(path, filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		tools = append(tools, read...)
	}
	return tools, nil
}

// readLines reads lines of JSON. A tool without a server gets that one.
func readLines(path, server string) (tools []tool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var t tool
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if t.Server == "" {
			t.Server = server
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// usable returns the tools whose arguments are an object, each name of a server once.
func usable(tools []tool) (kept []tool) {
	type key struct{ server, name string }
	seen := make(map[key]bool)
	for _, t := range tools {
		var schema struct {
			Type       any
			Properties map[string]any
		}
		k := key{t.Server, t.Name}
		if seen[k] || json.Unmarshal(t.InputSchema, &schema) != nil || schema.Type != "object" {
			continue
		}
		seen[k] = true
		kept = append(kept, t)
	}
	return kept
}
