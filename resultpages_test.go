package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/jq"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writer returns a tool whose result has n lines of 10 bytes, line breaks
// included.
func writer() mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.NewTool("write", mcp.WithNumber("n")),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(linesOf(r.GetInt("n", 0))), nil
		},
	}
}

func linesOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %4d\n", i)
	}
	return b.String()
}

// A long result is cut and says so. The model can read it to its last byte.
func TestLongResultIsReadPageByPage(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{MaxResult: 1000, Servers: []ServerConfig{serving("a", writer())}})
	call := func(name, args string) *mcp.CallToolResult {
		t.Helper()
		result, err := m.Call(t.Context(), name, args)
		require.NoError(t, err)
		return result
	}
	assert.Equal(t, linesOf(100), resultText(t, call("mcp_a__write", `{"n":100}`)), "as long as may be")
	before := m.Default().Tools()
	assert.NotContains(t, namesOf(before), PageToolName)

	cut := resultText(t, call("mcp_a__write", `{"n":1000}`))
	assert.Less(t, len(cut), 1300)
	assert.True(t, strings.HasPrefix(cut, "line    0\n"))
	assert.True(t, strings.HasSuffix(cut, "line  999\n"))
	assert.Contains(t, cut, `of 10000 bytes are left out here. To read them, call mcp_tool_page with {"id": "r1", "offset": 6`)
	assert.Equal(t, append(namesOf(before), PageToolName), namesOf(m.Default().Tools()))
	assert.NoError(t, checkRegistry(m.def, r))

	whole, offset := "", 0
	for offset < 10000 {
		part := resultText(t, call(PageToolName, fmt.Sprintf(`{"id":"r1","offset":%d}`, offset)))
		text, note, ok := strings.Cut(part, "\n[")
		require.True(t, ok)
		whole += text
		offset += len(text)
		assert.Equal(t, offset == 10000, note == "the end of result r1, 10000 bytes]", note)
		if offset < 10000 {
			assert.Contains(t, note, fmt.Sprintf(`{"id": "r1", "offset": %d}; %d bytes are left`, offset, 10000-offset))
		}
	}
	assert.Equal(t, linesOf(1000), whole)

	for args, text := range map[string]string{
		`{"id":"r2"}`:              "There is no result \"r2\" any more: only the last few are kept. Call its tool again if you need it.",
		`{"offset":5}`:             `mcp_tool_page was not run: "id" is missing or empty. Call it with {"id": "a result's id", "offset": 0}.`,
		`{"id":"r1","offset":"5"}`: `mcp_tool_page was not run: "offset" is a JSON string, want a number. Call it with {"id": "a result's id", "offset": 0}.`,
	} {
		result := call(PageToolName, args)
		assert.True(t, result.IsError)
		assert.Equal(t, text, resultText(t, result))
	}
	for _, offset := range []string{"-5", "1e300", "10000", "0.5"} {
		assert.False(t, call(PageToolName, `{"id":"r1","offset":`+offset+`}`).IsError, offset)
	}

	m.Default().Compact()
	assert.NotContains(t, namesOf(m.Default().Tools()), PageToolName)
	assert.NoError(t, checkRegistry(m.def, r))
}

// A session can't read the pages of another session.
// With a selector, the note under a cut result says what it consists of, and the page tool takes an
// expression. What it answers is bounded, and errors help.
func TestSelectFromLongResults(t *testing.T) {
	t.Parallel()
	issues := make([]map[string]any, 500)
	for i := range issues {
		issues[i] = map[string]any{"id": i, "title": fmt.Sprintf("Issue %d", i), "body": strings.Repeat("x", 100)}
	}
	data, err := json.Marshal(map[string]any{"total": len(issues), "items": issues})
	require.NoError(t, err)
	tool := mcpserver.ServerTool{Tool: mcp.NewTool("issues", mcp.WithString("kind")), Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.GetString("kind", "") == "text" {
			return mcp.NewToolResultText(linesOf(1000)), nil
		}
		return mcp.NewToolResultText(string(data)), nil
	}}
	m, r := newTestManager(t, &Options{MaxResult: 1000, Select: jq.Selector{}, Servers: []ServerConfig{serving("a", tool)}})
	call := func(name, args string) (string, bool) {
		t.Helper()
		result, err := m.Call(t.Context(), name, args)
		require.NoError(t, err)
		var texts []string
		for _, c := range result.Content {
			texts = append(texts, mcp.GetTextFromContent(c))
		}
		return strings.Join(texts, "\n"), result.IsError
	}
	cut, _ := call("mcp_a__issues", `{}`)
	assert.Contains(t, cut, "[Result r1 is JSON: {items: [500 × {body: string, id: number, title: string}], total: number}. "+
		`To get a part of it, call mcp_tool_page with {"id": "r1", "select": "a jq expression"}]`)
	tools := m.Default().Tools()
	page := tools[slices.Index(namesOf(tools), PageToolName)]
	assert.Contains(t, string(page.InputSchema()), `"select":{"type":"string"`)
	assert.NoError(t, checkRegistry(m.def, r))

	for _, test := range []struct{ expression, want string }{
		{".total", "500"},
		{"[.items[] | select(.id > 497).title]", `["Issue 498","Issue 499"]`},
		{".items[] | select(.id == 900)", "The expression selects nothing in result r1, which is {items: [500 × {body: string, id: number, title: string}], total: number}."},
	} {
		args, err := json.Marshal(map[string]any{"id": "r1", "select": test.expression})
		require.NoError(t, err)
		got, failed := call(PageToolName, string(args))
		assert.False(t, failed)
		assert.Equal(t, test.want, got, test.expression)
	}
	big, _ := newTestManager(t, &Options{Select: jq.Selector{}, Servers: []ServerConfig{serving("a", tool)}})
	shown, err := big.Call(t.Context(), "mcp_a__issues", nil)
	require.NoError(t, err)
	assert.Less(t, len(mcp.GetTextFromContent(shown.Content[0])), 4500, "of 60 KB, with a limit of 48")

	long, _ := call(PageToolName, `{"id":"r1","select":".items[].title"}`)
	assert.Less(t, len(long), 1100)
	assert.Contains(t, long, "selected bytes; select less to see the others …]")
	wrong, failed := call(PageToolName, `{"id":"r1","select":".items[}"}`)
	assert.True(t, failed)
	assert.Equal(t, `Nothing was selected in result r1: the expression is wrong before byte 8, at "}". The result is {items: [500 × {body: string, id: number, title: string}], total: number}.`, wrong)

	text, _ := call("mcp_a__issues", `{"kind":"text"}`)
	assert.NotContains(t, text, "is JSON")
	wrong, failed = call(PageToolName, `{"id":"r2","select":"."}`)
	assert.True(t, failed)
	assert.Equal(t, "Nothing was selected in result r2: the result is not JSON. Read it by offset instead.", wrong)
}

// A selector that panics fails alone.
func TestSelectorPanics(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{MaxResult: 1000, Select: panickingSelector{}, Servers: []ServerConfig{serving("a", writer())}})
	_, err := m.Call(t.Context(), "mcp_a__write", `{"n":1000}`)
	require.NoError(t, err)
	result, err := m.Call(t.Context(), PageToolName, `{"id":"r1","select":"."}`)
	require.NoError(t, err)
	assert.True(t, result.IsError)
	assert.Contains(t, resultText(t, result), "Options.Select")
}

// A selector that hangs holds up a call no longer than its context lasts, and what we answer
// ourselves is not selected from.
func TestSelectorHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := newTestManager(t, &Options{MaxResult: 1000, Select: hangingSelector{t.Context().Done()}, Servers: []ServerConfig{serving("a", writer())}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result, err := m.Call(ctx, "mcp_a__write", `{"n":1000}`)
		require.NoError(t, err)
		assert.Contains(t, resultText(t, result), "bytes are left out here")
		begun := time.Now()
		s := m.NewSession(nil)
		s.truncate(mcp.NewToolResultText(linesOf(1000)))
		assert.Zero(t, time.Since(begun))
	})
}

type hangingSelector struct{ until <-chan struct{} }

func (h hangingSelector) Select(context.Context, string, string) (string, error) {
	<-h.until
	return "", nil
}

func (h hangingSelector) Shape(string) string {
	<-h.until
	return "a shape"
}

func (hangingSelector) Check(string) error { return nil }

type panickingSelector struct{}

func (panickingSelector) Select(context.Context, string, string) (string, error) { panic("select") }
func (panickingSelector) Shape(string) string                                    { panic("shape") }
func (panickingSelector) Check(string) error                                     { panic("check") }

func TestPagesAreOfOneSession(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{MaxResult: 100, Servers: []ServerConfig{serving("a", writer())}})
	one, other := m.NewSession(nil), m.NewSession(nil)
	_, err := one.Call(t.Context(), "mcp_a__write", json.RawMessage(`{"n":50}`))
	require.NoError(t, err)
	_, err = other.Call(t.Context(), PageToolName, `{"id":"r1"}`)
	assert.ErrorIs(t, err, ErrUnknownTool)
	r, err := one.Call(t.Context(), PageToolName, `{"id":"r1","offset":490}`)
	require.NoError(t, err)
	assert.Equal(t, "line   49\n\n[the end of result r1, 500 bytes]", resultText(t, r))
}

func TestResultsWithoutLimit(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{MaxResult: NoLimit, Servers: []ServerConfig{serving("a", writer())}})
	r, err := m.Call(t.Context(), "mcp_a__write", `{"n":9000}`)
	require.NoError(t, err)
	assert.Len(t, resultText(t, r), 90_000)
}

// MaxResult bounds whatever a result has; what can be read page by page is.
func TestResultKinds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line of text\n", 10_000)
	quoted, err := json.Marshal(long)
	require.NoError(t, err)
	tests := []struct {
		name  string
		r     mcp.CallToolResult
		says  string // what the model reads
		pages string // what it can read page by page
	}{
		{"structured", mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("short")}, StructuredContent: map[string]any{"big": long}}, "short", `short` + "\n" + `{"big":` + string(quoted) + `}`},
		{"image", mcp.CallToolResult{Content: []mcp.Content{mcp.NewImageContent(long, "image/png")}}, "image (image/png), 130009 bytes", ""},
		{"sound", mcp.CallToolResult{Content: []mcp.Content{mcp.NewAudioContent(long, "audio/wav\nIgnore this.")}}, "audio (audio/wav Ignore this.), 130022 bytes", ""},
		{"pointer", mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Type: "text", Text: long}}}, "line of text", long},
		{"blob", mcp.CallToolResult{Content: []mcp.Content{mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "x", Blob: long})}}, "file, 130001 bytes", ""},
		{"resource pointer", mcp.CallToolResult{Content: []mcp.Content{mcp.NewEmbeddedResource(&mcp.TextResourceContents{URI: "x", Text: long})}}, "line of text", long},
		{"link", mcp.CallToolResult{Content: []mcp.Content{mcp.NewResourceLink("x", "x", long, "")}}, "link, 130002 bytes", ""},
		{"nil", mcp.CallToolResult{Content: []mcp.Content{nil, mcp.NewTextContent("rest")}}, "rest", ""},
		{"error", mcp.CallToolResult{IsError: true, Content: []mcp.Content{mcp.NewTextContent(long)}}, "line of text", long},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, _ := newTestManager(t, &Options{MaxResult: 1000})
			require.NoError(t, m.AddTools("l", mcpserver.ServerTool{Tool: mcp.NewTool("run"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &test.r, nil
			}}))
			r, err := m.Call(t.Context(), "mcp_l__run", nil)
			require.NoError(t, err)
			data, err := json.Marshal(r)
			require.NoError(t, err)
			assert.Less(t, len(data), 2000)
			assert.Equal(t, test.r.IsError, r.IsError)
			assert.Contains(t, mcp.GetTextFromContent(r.Content[0]), test.says)
			if test.pages == "" {
				assert.NotContains(t, namesOf(m.Default().Tools()), PageToolName)
				return
			}
			read := ""
			for offset := 0; offset < len(test.pages); {
				page, err := m.Call(t.Context(), PageToolName, fmt.Sprintf(`{"id":"r1","offset":%d}`, offset))
				require.NoError(t, err)
				part, _, _ := strings.Cut(mcp.GetTextFromContent(page.Content[0]), "\n[")
				require.True(t, strings.HasPrefix(test.pages[offset:], part), "at %d: %q", offset, part)
				offset += len(part)
				if strings.HasPrefix(test.pages[offset:], "\n") {
					part, offset = part+"\n", offset+1
				}
				read += part
			}
			assert.Equal(t, test.pages, read)
		})
	}
}

// A client refuses a result without structured content if the tool was listed with an output schema.
// So what it calls by name keeps it, and what the model reads is cut. What it calls in another way has
// no output schema, and no other host sends structured content anywhere.
func TestClientsGetPromisedStructuredContent(t *testing.T) {
	t.Parallel()
	long := map[string]any{"big": strings.Repeat("line of text\n", 10_000)}
	for _, test := range []struct {
		name     string
		client   bool
		schema   string
		maxMedia int
		byBridge bool
		stays    bool
	}{
		{"shown on a page", true, "page", 0, false, true},
		{"promised", true, `{"type":"object"}`, 0, false, true},
		{"not promised", true, "", 0, false, false},
		{"by the call tool", true, `{"type":"object"}`, 0, true, false},
		{"no client", false, `{"type":"object"}`, 0, false, false},
		{"beyond MaxMedia", true, `{"type":"object"}`, 100_000, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, _ := newTestManager(t, &Options{MaxResult: 5000, MaxMedia: test.maxMedia})
			tool := mcp.NewTool("run")
			if test.schema == "page" {
				tool.Meta = mcp.NewMetaFromMap(map[string]any{"ui": map[string]any{"resourceUri": "ui://l/page"}})
			} else if test.schema != "" {
				tool.RawOutputSchema = json.RawMessage(test.schema)
			}
			require.NoError(t, m.AddTools("l", mcpserver.ServerTool{Tool: tool, Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultStructuredOnly(long), nil
			}}))
			s := m.NewSession(&SessionOptions{Client: test.client, Disclosure: ByBridge})
			name, args := "mcp_l__run", "{}"
			if test.byBridge {
				name, args = CallToolName, `{"name":"mcp_l__run","arguments":{}}`
			}
			r, err := s.Call(t.Context(), name, args)
			require.NoError(t, err)
			if test.stays {
				assert.Equal(t, long, r.StructuredContent)
			} else {
				assert.Nil(t, r.StructuredContent)
			}
			said := 0
			for _, c := range r.Content {
				said += len(mcp.GetTextFromContent(c))
			}
			assert.Less(t, said, 6000)
			assert.Greater(t, said, 3000)
		})
	}
}

// A screenshot is no text: by default one of a megabyte reaches the model, and one
// that providers refuse does not.
func TestPictures(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	picture := func(size int) *mcp.CallToolResult {
		name := fmt.Sprintf("show_%d", size)
		require.NoError(t, m.AddTools("l", mcpserver.ServerTool{Tool: mcp.NewTool(name), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewImageContent(strings.Repeat("A", size), "image/png")}}, nil
		}}))
		r, err := m.Call(t.Context(), "mcp_l__"+name, nil)
		require.NoError(t, err)
		return r
	}
	assert.IsType(t, mcp.ImageContent{}, picture(1 << 20).Content[0])
	assert.IsType(t, mcp.TextContent{}, picture(6 << 20).Content[0])
}

// However many contents a server sends, the model gets as many as MaxResult has room
// for.
func TestManyContents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]mcp.Content{
		"texts": mcp.NewTextContent(""), "images": mcp.NewImageContent("", ""), "links": mcp.NewResourceLink("a", "", "", ""),
		"sounds": mcp.NewAudioContent("", ""), "files": mcp.NewEmbeddedResource(mcp.BlobResourceContents{}), "resources": mcp.NewEmbeddedResource(mcp.TextResourceContents{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := newTestManager(t, nil)
			require.NoError(t, m.AddTools("l", mcpserver.ServerTool{Tool: mcp.NewTool("run"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: slices.Repeat([]mcp.Content{c}, 150_000)}, nil
			}}))
			r, err := m.Call(t.Context(), "mcp_l__run", nil)
			require.NoError(t, err)
			data, err := json.Marshal(r)
			require.NoError(t, err)
			assert.Less(t, len(data), 2*defaultMaxResult)
			_, text := c.(mcp.TextContent)
			if resource, ok := c.(mcp.EmbeddedResource); ok {
				_, text = resource.Resource.(mcp.TextResourceContents)
			}
			assert.Equal(t, !text, strings.Contains(string(data), "149232 more images, links and the like are left out"), "%d contents", len(r.Content))
		})
	}
}

// All sessions together keep the newest long results, within Options.MaxKept.
func TestSessionsShareMaxKept(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{MaxResult: 100, MaxKept: 1000, Servers: []ServerConfig{serving("a", writer())}})
	one, two := m.NewSession(nil), m.NewSession(nil)
	write := func(s *Session) {
		_, err := s.Call(t.Context(), m.InlineTools()[0].Name(), `{"n":600}`)
		require.NoError(t, err)
	}
	page := func(s *Session) bool {
		r, err := s.Call(t.Context(), PageToolName, `{"id":"r1"}`)
		require.NoError(t, err)
		return !r.IsError
	}
	write(one)
	assert.True(t, page(one))
	write(two)
	assert.True(t, page(two))
	assert.False(t, page(one), "it is the oldest")
	two.Close()
	write(one)
	r, err := one.Call(t.Context(), PageToolName, `{"id":"r2"}`)
	require.NoError(t, err)
	assert.False(t, r.IsError, "that is another")
}

// With StateParts, whoever restores a session reads on in the results that were cut, and so
// does who restores it from there. Without, and if a part was removed, the model is told.
func TestCutResultsAreReadOnElsewhere(t *testing.T) {
	t.Parallel()
	parts := new(partMap)
	begin := func(parts store.Parts) *Manager {
		m, _ := newTestManager(t, &Options{MaxResult: 1000, MaxState: 1 << 20, StateParts: parts, Servers: []ServerConfig{serving("a", writer())}})
		return m
	}
	call := func(s *Session, name, args string) *mcp.CallToolResult {
		t.Helper()
		result, err := s.Call(t.Context(), name, args)
		require.NoError(t, err)
		return result
	}
	page := func(s *Session, id string) *mcp.CallToolResult {
		t.Helper()
		return call(s, PageToolName, fmt.Sprintf(`{"id":%q,"offset":5000}`, id))
	}
	s := begin(parts).Default()
	call(s, "mcp_a__write", `{"n":1000}`)
	call(s, "mcp_a__write", `{"n":200000}`)
	last := "r1"
	for i := range 16 {
		state := s.Save()
		assert.Less(t, len(state), 3000)
		var err error
		s, _, err = begin(parts).RestoreSession(state, nil)
		require.NoError(t, err)
		assert.True(t, page(s, "r2").IsError, "it has more bytes than a part may have")
		assert.True(t, strings.HasPrefix(resultText(t, page(s, last)), "line  500\n"))
		call(s, "mcp_a__write", `{"n":1000}`)
		last = fmt.Sprint("r", i+3)
	}
	assert.True(t, page(s, "r1").IsError, "only the newest are kept")
	again, _, err := begin(parts).RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	parts.forgetting(nil)
	assert.True(t, page(again, last).IsError)

	s = begin(nil).Default()
	call(s, "mcp_a__write", `{"n":1000}`)
	assert.False(t, page(s, "r1").IsError)
	s, _, err = begin(nil).RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.True(t, page(s, "r1").IsError)
}

// While a session goes on, its cut results stay in a store that drops what was not put for as
// long as states are kept, and an hour more. For that a part is read at most once an hour,
// wherever the session is.
func TestCutResultsStayAsLongAsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := &agingParts{parts: make(map[string]agedPart)}
		begin := func() *Manager {
			m := NewManager(&Options{MaxResult: 1000, StateParts: parts, Servers: []ServerConfig{serving("a", writer())}})
			require.NoError(t, m.Start(t.Context()))
			return m
		}
		m := begin()
		_, err := m.Call(t.Context(), "mcp_a__write", json.RawMessage(`{"n":1000}`))
		require.NoError(t, err)
		state := m.Default().Save()
		require.NoError(t, m.Close())
		for range 20 { // on another replica each time
			for range 30 {
				parts.gets = 0
				time.Sleep(time.Minute)
				m := begin()
				s, _, err := m.RestoreSession(state, nil)
				require.NoError(t, err)
				state = s.Save()
				require.NoError(t, m.Close())
				assert.LessOrEqual(t, parts.gets, 2, "the prefix, and the text if it is put again")
			}
			time.Sleep(7 * time.Hour)
			parts.drop(8*time.Hour + time.Hour)
		}
		m = begin()
		defer func() { _ = m.Close() }()
		s, _, err := m.RestoreSession(state, nil)
		require.NoError(t, err)
		r, err := s.Call(t.Context(), PageToolName, json.RawMessage(`{"id":"r1","offset":5000}`))
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(resultText(t, r), "line  500\n"), resultText(t, r))
		parts.drop(0)
		state = s.Save()
		assert.Contains(t, string(state), `"cut":"r1=`, "it can't be put again, and nothing else fails")
	})
}

// agingParts is a store.Parts that knows when parts were put.
type agingParts struct {
	parts map[string]agedPart
	gets  int
}

type agedPart struct {
	data []byte
	put  time.Time
}

func (p *agingParts) Put(key string, data []byte) error {
	p.parts[key] = agedPart{data, time.Now()}
	return nil
}

func (p *agingParts) Get(key string) ([]byte, error) {
	p.gets++
	return p.parts[key].data, nil
}

// drop removes what was not put for that long.
func (p *agingParts) drop(age time.Duration) {
	maps.DeleteFunc(p.parts, func(_ string, of agedPart) bool { return time.Since(of.put) >= age })
}
