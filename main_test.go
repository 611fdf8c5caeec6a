package mcphybrid

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/text"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain runs the tests, or one of the servers that they start as children.
// At the end, no goroutine and no child may be left.
func TestMain(m *testing.M) {
	if mode := os.Getenv("TEST_SERVER"); mode != "" {
		serveChild(mode)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if left := children(os.Getpid()); code == 0 && len(left) > 0 {
			fmt.Println("processes left:", left)
			code = 1
		}
		os.Exit(code)
	}))
}

// children returns the command lines of the processes that descend from pid
// or, having lost their parent, carry its mark. It knows none but on Linux.
func children(pid int) []string {
	var list []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		env, _ := os.ReadFile(filepath.Dir(path) + "/environ")
		var ppid int
		var state string
		_, rest, _ := strings.Cut(string(stat), ") ")
		_, _ = fmt.Sscan(rest, &state, &ppid)
		marked := strings.Contains(string(env), fmt.Sprintf("%s=%d-", childMark, pid))
		if state != "Z" && (ppid == pid || marked) {
			cmd, _ := os.ReadFile(filepath.Dir(path) + "/cmdline")
			list = append(list, strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return list
}

// check returns the first invariant that is broken in m, in the Manager of one
// of its users or in one of the sessions, or nil. It may be called while others
// use them.
func check(m *Manager, sessions ...*Session) error {
	m.mu.Lock()
	users := m.users.list()
	m.mu.Unlock()
	for _, u := range users {
		if err := check(u); err != nil {
			return fmt.Errorf("user %q: %w", u.user.id, err)
		}
	}
	for _, s := range append(sessions, m.session) {
		if err := checkView(s.view()); err != nil {
			return err
		}
		s.mu.Lock()
		v := s.viewLocked()
		list := s.shownLocked(v)
		s.mu.Unlock()
		for _, e := range list {
			if e.tool != nil && v.held(e.tool.name) != nil {
				return fmt.Errorf("%s is held back, and shown", e.tool.name)
			}
		}
	}
	return nil
}

func checkView(v view) error {
	places := make(map[string]int)
	for _, list := range [][]*BridgeTool{v.inline, v.active} {
		for _, t := range list {
			places[t.name]++
			if !v.rights.permit(t.name) {
				return fmt.Errorf("the session has %s and may not use it", t.name)
			}
		}
	}
	var all []*BridgeTool
	for t, st := range v.each() {
		switch there, _ := v.lookup(t.name); {
		case st == hidden:
			continue
		case there != t:
			return fmt.Errorf("%s is two tools", t.name)
		case st.searchable() && !v.isActive(t.name):
			places[t.name]++
		}
		if places[t.name] != 1 {
			return fmt.Errorf("%s is in %d of inline, deferred and active", t.name, places[t.name])
		}
		all = append(all, t)
	}
	position := -1
	for _, t := range v.inline {
		next := slices.Index(all, t)
		if next <= position {
			return fmt.Errorf("inline tool %s is not in registration order", t.name)
		}
		position = next
	}
	parts := v.parts(func(_ *BridgeTool, st standing) bool { return st != hidden })
	found := make(map[string]int)
	for _, p := range parts {
		for doc := range p.indexed {
			if p.keep(doc) {
				found[p.document(doc).name]++
			}
		}
	}
	for _, t := range all {
		if found[t.name] != 1 {
			return fmt.Errorf("%s is found %d times", t.name, found[t.name])
		}
	}
	for _, c := range v.catalogs {
		if err := checkCatalog(c); err != nil {
			return err
		}
	}
	return nil
}

func checkCatalog(c *catalog) error {
	for _, t := range c.tools {
		switch {
		case !text.IsSafeName(t.name):
			return fmt.Errorf("%q is no safe name", t.name)
		case c.tool(t.name) != t:
			return fmt.Errorf("%s is two tools", t.name)
		case len(c.byName) != len(c.tools):
			return fmt.Errorf("%d tools have %d names", len(c.tools), len(c.byName))
		}
	}
	for i, t := range c.documents() {
		if x, ok := c.index.(*search.Index); ok && x.Document(i) != c.known.of(t).documentOf(t) {
			return fmt.Errorf("document %d is not that of %s", i, t.name)
		}
	}
	for name := range c.held {
		if c.tool(name) != nil {
			return fmt.Errorf("%s is held back, and in the catalog", name)
		}
	}
	for t, needs := range c.needs {
		for i, n := range append(slices.Clip(needs), t) {
			if c.tool(n.name) != n || slices.Contains(needs[:i], n) {
				return fmt.Errorf("%s needs %v", t.name, toolNames(needs))
			}
		}
	}
	if c.index.Len() != len(c.indexed) {
		return fmt.Errorf("the index has %d documents for %d tools", c.index.Len(), len(c.indexed))
	}
	switch x := c.index.(type) {
	case *search.Index:
		return x.Check()
	case *BM25Index:
		var texts []string
		for _, t := range c.documents() {
			text := t.def.server + " " + t.def.name + " " + t.def.description
			if h := c.known.of(t); h != nil {
				text += " " + h.words()
			}
			texts = append(texts, text)
		}
		if len(texts) > 0 && !reflect.DeepEqual(x.postings, NewBM25Index(texts, nil).postings) {
			return fmt.Errorf("the index is not that of the %d deferred tools", len(texts))
		}
	}
	return nil
}

// checkRegistry returns how the registry differs from what the session offers,
// or nil. Nobody else may use them meanwhile.
func checkRegistry(s *Session, r *ToolRegistry) error {
	var want, got []string
	for _, t := range s.offer().tools {
		want = append(want, t.Name())
	}
	for _, t := range r.List() {
		got = append(got, t.Name())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return fmt.Errorf("the registry holds %v, the session offers %v", got, want)
	}
	if groups := s.offer().groups; len(groups)+len(r.groups) > 0 && !reflect.DeepEqual(groups, r.groups) {
		return fmt.Errorf("the registry has the groups %v, want %v", r.groups, groups)
	}
	return nil
}

// newTestManager returns a started Manager that is checked and closed when the
// test ends, and then has left nothing in its registry.
func newTestManager(t *testing.T, opts *Options) (*Manager, *ToolRegistry) {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	r := NewRegistry()
	if o.Registry == nil {
		o.Registry = r
	}
	m := NewManager(&o)
	t.Cleanup(func() {
		assert.NoError(t, check(m))
		if o.Registry == r {
			assert.NoError(t, checkRegistry(m.session, r))
		}
		assert.NoError(t, m.Close())
		assert.Empty(t, r.List())
		assert.Empty(t, r.groups)
		assert.Nil(t, r.activate)
	})
	require.NoError(t, m.Start(t.Context()))
	return m, r
}

// echoTool returns a tool that answers with its name and arguments.
func echoTool(name, description string) mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.NewTool(name, mcp.WithDescription(description), mcp.WithString("text")),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(fmt.Sprintf("%s %s", name, r.Params.RawArguments)), nil
		},
	}
}

// inProcess returns a real MCP server in this process, of n tools named
// tool_000 and so on, which mcp-go lists in this order.
func inProcess(name string, n int) ServerConfig {
	s := mcpserver.NewMCPServer(name, "1")
	for i := range n {
		tool := fmt.Sprintf("tool_%03d", i)
		s.AddTools(echoTool(tool, fmt.Sprintf("Does chore %d for %s", i, name)))
	}
	return ServerConfig{Name: name, InProcess: s}
}

// serving returns a real MCP server in this process with the given tools.
func serving(name string, tools ...mcpserver.ServerTool) ServerConfig {
	s := mcpserver.NewMCPServer(name, "1")
	s.AddTools(tools...)
	return ServerConfig{Name: name, InProcess: s}
}

func toolNames[T Tool](tools []T) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name())
	}
	return names
}

func resultText(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	require.NotNil(t, r)
	require.Len(t, r.Content, 1)
	return mcp.GetTextFromContent(r.Content[0])
}

func skipUnlessUnix(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs process groups, which Windows has not")
	}
}
