package add

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Limits of a registry.
const (
	maxBytes   = 4 << 20 // of a file or an answer
	maxFiles   = 10_000  // of a folder
	maxPages   = 20      // of a list at an address
	fetchTime  = 30 * time.Second
	maxFolders = 64 << 20 // bytes of all files of a folder
)

// find returns the server.json of the server of that name at a place.
func find(ctx context.Context, place, name string) (json.RawMessage, error) {
	var found matches
	found.name = name
	var err error
	switch {
	case strings.Contains(place, "://"):
		err = found.fetch(ctx, place)
	default:
		err = found.read(place)
	}
	if err != nil {
		return nil, err
	}
	return found.one()
}

// matches are the servers of a name. It is a whole name, or the last part of some.
type matches struct {
	name string
	list []match
}

type match struct {
	name   string
	latest bool
	data   json.RawMessage
}

// one returns the only server, in its latest version.
func (m *matches) one() (json.RawMessage, error) {
	if i := slices.IndexFunc(m.list, func(c match) bool { return c.name == m.name }); i >= 0 {
		m.list = slices.DeleteFunc(m.list, func(c match) bool { return c.name != m.name })
	}
	var names []string
	for _, c := range m.list {
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("the registry has no server %q", m.name)
	case len(names) > 1:
		slices.Sort(names)
		return nil, fmt.Errorf("the registry has several: name one of %s", text.Line(strings.Join(names, ", "), 1000))
	}
	if i := slices.IndexFunc(m.list, func(c match) bool { return c.latest }); i >= 0 {
		return m.list[i].data, nil
	}
	return m.list[len(m.list)-1].data, nil // versions are listed in order
}

// take takes the servers that fit from a server.json, or a list of them. It returns where the
// list goes on, if it does.
func (m *matches) take(data []byte) (next string, err error) {
	var list struct {
		Name     string
		Servers  []json.RawMessage
		Metadata struct{ NextCursor string }
	}
	if err := json.Unmarshal(data, &list); err != nil {
		if json.Unmarshal(data, &list.Servers) != nil {
			return "", text.JSONError(data, err)
		}
	}
	if list.Servers == nil && list.Name != "" {
		list.Servers = []json.RawMessage{data}
	}
	for _, raw := range list.Servers {
		var one struct {
			Name   string
			Server json.RawMessage
			Meta   map[string]struct{ IsLatest bool } `json:"_meta"`
		}
		if json.Unmarshal(raw, &one) != nil {
			continue // another's malformed entry keeps nobody from this one
		}
		c := match{name: one.Name, data: raw}
		if one.Server != nil {
			c.data = one.Server
			var inner struct{ Name string }
			_ = json.Unmarshal(one.Server, &inner)
			c.name = inner.Name
		}
		for _, about := range one.Meta {
			c.latest = c.latest || about.IsLatest
		}
		if c.name != "" && (c.name == m.name || path.Base(c.name) == m.name) {
			m.list = append(m.list, c)
		}
	}
	return list.Metadata.NextCursor, nil
}

// read takes what a file has, or each file *.json in a folder, in the order of their names.
func (m *matches) read(place string) error {
	info, err := os.Stat(place)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		data, err := readFile(place)
		if err == nil {
			_, err = m.take(data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		return nil
	}
	files, size := 0, 0
	return filepath.WalkDir(place, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(file) != ".json" {
			return err
		}
		if files++; files > maxFiles {
			return fmt.Errorf("%s has more than %d files", place, maxFiles)
		}
		data, err := readFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if size += len(data); size > maxFolders {
			return fmt.Errorf("%s has more than %d bytes", place, maxFolders)
		}
		_, _ = m.take(data) // a folder may have other files
		return nil
	})
}

func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("more than %d bytes", maxBytes)
	}
	return data, err
}

// fetch takes what a registry answers at an address, page by page.
func (m *matches) fetch(ctx context.Context, place string) error {
	at, err := url.Parse(place)
	if err != nil {
		return err
	}
	if at.Scheme != "https" && (at.Scheme != "http" || !net.ParseIP(at.Hostname()).IsLoopback()) {
		return fmt.Errorf("-registry %s: want an https address", at.Redacted())
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	client := http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 5 || r.URL.Host != at.Host || r.URL.Scheme != at.Scheme {
			return errors.New("it leads elsewhere")
		}
		return nil
	}}
	cursor := ""
	for range maxPages {
		page, query := *at, at.Query()
		query.Set("search", path.Base(m.name)) // a registry that does not know it answers with all
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		page.RawQuery = query.Encode()
		next, err := m.page(ctx, &client, page.String())
		if err != nil {
			return fmt.Errorf("-registry %s: %w", at.Redacted(), err)
		}
		if next == "" || next == cursor {
			return nil
		}
		cursor = next
	}
	if len(m.list) == 0 {
		return fmt.Errorf("-registry %s: not among its first %d pages", at.Redacted(), maxPages)
	}
	return nil
}

func (m *matches) page(ctx context.Context, client *http.Client, address string) (next string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", answer.StatusCode)
	}
	data, err := readAll(answer.Body)
	if err != nil {
		return "", err
	}
	return m.take(data)
}

// A proposal is a server to add.
type proposal struct {
	registered, name, description string
	entry                         entry
	asks                          []asked
	notes                         []string
}

// An entry is a server as mcp.json has it.
type entry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// asked is a value that the user has to set as a variable.
type asked struct {
	variable, description string
	secret                bool
}

// propose reads a server.json. What it asks for becomes a reference to a variable.
func propose(data []byte) (*proposal, error) {
	p := new(proposal)
	variables := make(map[string]bool)
	file, err := config.Parse(data, "server.json", &config.Options{Dialect: "registry", Input: func(in config.Input) (string, error) {
		name := variable(in.ID)
		if name == "" || variables[name] {
			return "", fmt.Errorf("%q is no name for a variable of its own", text.Line(in.ID, 200))
		}
		variables[name] = true
		p.asks = append(p.asks, asked{name, text.Line(in.Description, 200), in.Password})
		return "${" + name + "}", nil
	}})
	if err != nil {
		return nil, err
	}
	if len(file.Servers) != 1 || file.Servers[0].Disabled {
		return nil, errors.New("it has no server that is switched on")
	}
	var about struct{ Name, Description string }
	_ = json.Unmarshal(data, &about) // it was just read
	s := file.Servers[0]
	p.name, p.registered, p.description, p.notes = s.Name, text.Line(about.Name, 200), text.Line(about.Description, 200), file.Notes
	p.entry = entry{Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers}
	if s.SSE {
		p.entry.Type = "sse"
	}
	return p, nil
}

// variable returns a name for the variable of an input, or "".
func variable(id string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id), "_0123456789")
}
