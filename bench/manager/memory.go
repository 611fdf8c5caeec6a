//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// perUser is how many tools a user has, beside how many users there are beside a system's tools.
const (
	perUser = 50
	beside  = 200
)

// measureMemory measures the heap that tools take, once they have been searched. The
// tools themselves, as the host has them, don't count.
func measureMemory(n int, dir string, row func(string, func() float64)) {
	tools, err := readTools(dir, n)
	must(err)
	m := newManager(nil)
	defer m.Close()
	must(m.AddTools("warm", tool("warm", "loads what all Managers share")))
	m.Search("warm", 1)

	var size float64 // of their JSON
	for _, t := range tools {
		raw, err := json.Marshal(t.Tool)
		must(err)
		size += float64(len(raw))
	}
	filled := func() (m *mcphybrid.Manager, took float64) {
		before := heap()
		m = newManager(nil)
		for i := 0; i < len(tools); i += perServer {
			must(m.AddTools(fmt.Sprintf("srv%05d", i/perServer), tools[i:min(i+perServer, len(tools))]...))
		}
		m.Search("create an issue", 5)
		m.Default().Tools()
		return m, heap() - before
	}
	row("memory, bytes a tool", func() float64 {
		m, took := filled()
		defer m.Close()
		return took / float64(len(tools))
	})
	row("memory, times the JSON", func() float64 {
		m, took := filled()
		defer m.Close()
		return took / size
	})
	row("memory once each was called, bytes a tool", func() float64 {
		before := heap()
		m, _ := filled()
		defer m.Close()
		for _, t := range slices.Concat(m.InlineTools(), m.DeferredTools()) {
			_, _ = m.NewSession(nil).Call(context.Background(), t.Name(), "{}") // they can't be called
		}
		return (heap() - before) / float64(len(tools))
	})
	row("memory of a user with 50 of them, bytes", func() float64 {
		users := make([]*mcphybrid.User, len(tools)/perUser)
		before := heap()
		for i := range users {
			u, err := m.NewUser(fmt.Sprint(i), nil)
			must(err)
			for j := 0; j < perUser; j += perServer {
				first := i*perUser + j
				must(u.AddTools(fmt.Sprintf("srv%05d", j/perServer), tools[first:first+perServer]...))
			}
			u.Default().Search("create an issue", 5)
			u.Default().Tools()
			users[i] = u
		}
		took := heap() - before
		for _, u := range users {
			must(u.Close())
		}
		return took / float64(len(users))
	})
	row("memory of a user with 50 tools beside all of these, bytes", func() float64 {
		m := newManager(nil)
		defer m.Close()
		for server, tools := range grouped(n, perWideServer) {
			must(m.AddTools(server, tools...))
		}
		own := slices.Collect(maps.Values(maps.Collect(grouped(beside*perUser, perUser))))
		used := func(u *mcphybrid.User) {
			u.Default().Search("create an issue", 5)
			u.Default().Tools()
		}
		first, err := m.NewUser("first", nil) // makes what all users share
		must(err)
		used(first)
		users := make([]*mcphybrid.User, beside)
		before := heap()
		for i := range users {
			u, err := m.NewUser(fmt.Sprint(i), nil)
			must(err)
			must(u.AddTools("own", own[i]...))
			used(u)
			users[i] = u
		}
		took := heap() - before
		for _, u := range append(users, first) {
			must(u.Close())
		}
		return took / beside
	})
}

// heap returns the bytes in use.
func heap() float64 {
	for range 3 { // a sync.Pool keeps its values over one collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// readTools returns up to n tools of the corpora in a folder, or made-up ones if dir
// is "". No two have the same name.
func readTools(dir string, n int) (tools []mcpserver.ServerTool, err error) {
	if dir == "" {
		for _, group := range grouped(n, n) {
			tools = group
		}
		return tools, nil
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "*", "tools.jsonl"))
	seen := make(map[string]bool)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(data) {
			var t struct {
				Name, Description string
				Schema            json.RawMessage `json:"input_schema"`
			}
			if err := json.Unmarshal(line, &t); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if seen[t.Name] {
				continue
			}
			seen[t.Name] = true
			if len(t.Schema) == 0 || t.Schema[0] != '{' {
				t.Schema = json.RawMessage(`{"type":"object"}`)
			}
			tools = append(tools, mcpserver.ServerTool{Tool: mcp.NewToolWithRawSchema(t.Name, t.Description, t.Schema)})
		}
	}
	if len(tools) == 0 {
		return nil, fmt.Errorf("%s: no folder with a tools.jsonl", dir)
	}
	return tools[:min(n, len(tools))], nil
}
