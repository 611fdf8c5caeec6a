package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

type tool struct {
	ID          string          `json:"id"`
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`

	Annotations mcp.ToolAnnotation `json:"annotations"`
}

type query struct {
	ID       string   `json:"id"`
	Query    string   `json:"query"`
	Relevant []string `json:"relevant"` // empty: no tool answers

	line int // in its file
}

// check returns what is wrong with a query, but for the tools that it names.
func (q *query) check() error {
	if q.Query == "" || q.Relevant == nil {
		return errors.New(`"query" or "relevant" is missing; the latter is [] if no tool answers`)
	}
	for i, name := range q.Relevant {
		if slices.Contains(q.Relevant[:i], name) {
			return fmt.Errorf("the relevant id %q is there twice", name)
		}
	}
	return nil
}

// readCorpus reads and checks both files.
func readCorpus(toolsFile, queriesFile string) (tools []tool, queries []query, err error) {
	known, lines := make(map[string]bool), make(map[[2]string]int)
	tools, err = readTools(toolsFile, func(t *tool, line int) (id string, err error) {
		if t.InputSchema == nil || string(t.InputSchema) == "null" {
			t.InputSchema = json.RawMessage(`{"type":"object"}`) // as the Manager does
		}
		t.Server = cmp.Or(t.Server, "-") // must not be empty; no word, so nothing for a ranker
		k := [2]string{t.Server, t.Name}
		switch {
		case t.Name == "":
			err = errors.New(`"name" is missing or empty`)
		case t.InputSchema[0] != '{':
			err = errors.New(`"input_schema" is neither an object nor null`)
		case lines[k] > 0:
			err = fmt.Errorf("server %q has the tool %q on line %d already", t.Server, t.Name, lines[k])
		}
		known[t.ID], lines[k] = true, line
		return t.ID, err
	})
	if err != nil {
		return nil, nil, err
	}
	queries, err = readLines(queriesFile, func(q *query, _ int) (id string, err error) {
		err = q.check()
		for _, id := range q.Relevant {
			if !known[id] {
				err = fmt.Errorf("there is no tool with the relevant id %q", id)
			}
		}
		return q.ID, err
	})
	return tools, queries, err
}

// readTools reads a file of tools or, if path is a folder, its answers to
// tools/list in the order of their names.
func readTools(path string, check func(t *tool, line int) (id string, err error)) ([]tool, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return readLines(path, check)
	}
	files, _ := filepath.Glob(filepath.Join(path, "*.json"))
	var tools []tool
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var answer struct {
			Server string
			Tools  []struct {
				Name, Title, Description string
				InputSchema              json.RawMessage
				Annotations              mcp.ToolAnnotation
			}
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for i, in := range answer.Tools {
			t := tool{answer.Server + "/" + in.Name, answer.Server, in.Name, in.Title, in.Description, in.InputSchema, in.Annotations}
			if _, err := check(&t, i+1); err != nil {
				return nil, fmt.Errorf("%s: tool %d: %w", file, i+1, err)
			}
			tools = append(tools, t)
		}
	}
	if tools == nil {
		return nil, fmt.Errorf("%s: no tools in it", path)
	}
	return tools, nil
}

// readLines is parseLines of a file.
func readLines[T any](path string, check func(object *T, line int) (id string, err error)) ([]T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseLines(path, data, check)
}

// parseLines returns the objects of data, which has one object on each line, of any
// length. check returns an object's id and what is wrong with it. Errors name
// file and line. A file without objects is an error.
func parseLines[T any](path string, data []byte, check func(object *T, line int) (id string, err error)) ([]T, error) {
	var objects []T
	ids, line := make(map[string]bool), 0
	for written := range bytes.Lines(data) {
		if line++; len(bytes.TrimSpace(written)) == 0 {
			continue
		}
		var object T
		id, err := "", json.Unmarshal(written, &object)
		if errors.As(err, new(*json.UnmarshalTypeError)) {
			err = text.JSONError(written, err)
		}
		if err == nil {
			id, err = check(&object, line)
		}
		if err == nil && (id == "" || ids[id]) {
			err = fmt.Errorf("the id %q is empty or that of another line", id)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		ids[id] = true
		objects = append(objects, object)
	}
	if objects == nil {
		return nil, fmt.Errorf("%s: the file is empty", path)
	}
	return objects, nil
}
