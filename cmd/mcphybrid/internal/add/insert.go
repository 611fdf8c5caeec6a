package add

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/jsonc"
)

// insert returns the content of a file with one more server, the last. All else stays as it
// is, also comments and spaces.
func insert(path string, p *proposal) ([]byte, error) {
	if p.name == "" || strings.Contains(p.name, "${") {
		return nil, fmt.Errorf("%q can't be its name: -as NAME gives another", p.name)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{\n  \"mcpServers\": {}\n}\n"), nil
	}
	if err != nil {
		return nil, err
	}
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".toml" || ext == ".yaml" || ext == ".yml" {
		return nil, fmt.Errorf("%s: only JSON is written", path)
	}
	next, err := inserted(data, p.name, p.entry)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return next, nil
}

// inserted is insert for the content of a file.
func inserted(data []byte, name string, value entry) ([]byte, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	names, last, err := members(jsonc.ToJSON(data)) // as many bytes
	if err != nil {
		return nil, err
	}
	for _, other := range names {
		if strings.EqualFold(other, name) {
			return nil, fmt.Errorf("it has a server %q already: -as NAME gives this one another name", other)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("    ", "  ")
	_ = enc.Encode(value) // strings can be written
	key, _ := json.Marshal(name)
	text := "\n    " + string(key) + ": " + strings.TrimSpace(b.String())
	if len(names) > 0 {
		text = "," + text
	} else {
		text += "\n  "
	}
	next := bytes.Join([][]byte{data[:last], []byte(text), data[last:]}, nil)
	if now, _, err := members(jsonc.ToJSON(next)); err == nil && len(now) == len(names)+1 && now[len(names)] == name {
		return next, nil
	}
	return nil, errors.New("there is no place to write the server to")
}

// members returns the names in "mcpServers", and where the last one ends, or else the object
// begins. Which of two such objects counts, readers of JSON do not agree on.
func members(data []byte) (names []string, last int, err error) {
	if !json.Valid(data) {
		return nil, 0, errors.New("it is not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, _ := dec.Token(); t != json.Delim('{') {
		return nil, 0, errors.New("it is no object")
	}
	var lines []string // of "mcpServers"
	for dec.More() {
		key, _ := dec.Token()
		if key == "mcpServers" {
			lines = append(lines, fmt.Sprint(1+bytes.Count(data[:dec.InputOffset()], []byte("\n"))))
		}
		if key != "mcpServers" || len(lines) > 1 {
			_ = dec.Decode(new(json.RawMessage)) // it is JSON, as we know
			continue
		}
		if t, _ := dec.Token(); t != json.Delim('{') {
			return nil, 0, errors.New(`"mcpServers" is no object`)
		}
		last = int(dec.InputOffset())
		for dec.More() {
			name, _ := dec.Token()
			_ = dec.Decode(new(json.RawMessage))
			text, _ := name.(string)
			names, last = append(names, text), int(dec.InputOffset())
		}
		_, _ = dec.Token() // its end
	}
	switch n := len(lines); n {
	case 0:
		return nil, 0, errors.New(`it has no "mcpServers" object to add to`)
	case 1:
		return names, last, nil
	default:
		where := "line " + lines[0]
		if distinct := slices.Compact(lines); len(distinct) > 1 {
			end := len(distinct) - 1
			where = "lines " + strings.Join(distinct[:end], ", ") + " and " + distinct[end]
		}
		return nil, 0, fmt.Errorf(`"mcpServers" is there %d times, in %s: keep one, with the servers of all`, n, where)
	}
}

// write replaces a file, all at once. A new one is for its owner only.
func write(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".mcp-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
