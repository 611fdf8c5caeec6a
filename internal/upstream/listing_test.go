package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever is bounded may be as much as the bound, and no more.
func TestListingAtItsBounds(t *testing.T) {
	t.Parallel()
	definition := func(n int) string { return `{"name":"` + strings.Repeat("x", n-len(`{"name":""}`)) + `"}` }
	members := func(n int) string { return `{"tools":[]` + strings.Repeat(`,"x":1`, n-1) + `}` }
	cursor := func(n int) string {
		return `{"tools":[],"nextCursor":"` + strings.Repeat("x", n-len(`""`)) + `"}`
	}
	empty := `{"tools":[]}`
	for name, test := range map[string]struct {
		fits, over []string
		want       string
	}{
		"elements": {[]string{`{"tools":[1,2]}`, `{"tools":[3]}`}, []string{`{"tools":[1,2]}`, `{"tools":[3,4]}`}, "it lists more tools than the limit of 3"},
		"members":  {[]string{members(1000)}, []string{members(1001)}, "tools/list result: it has more members than the limit of 1000"},
		"pages":    {slices.Repeat([]string{empty}, 4), slices.Repeat([]string{empty}, 5), "it lists its tools on more pages than the limit of 4"},
		"cursor":   {[]string{cursor(4096)}, []string{cursor(4097)}, "the cursor of a page has more bytes than the limit of 4096"},
		"bytes": {[]string{`{"tools":[` + definition(100) + `,` + definition(100) + `]}`}, []string{`{"tools":[` + definition(100) + `,` + definition(100) + `,1]}`},
			"its tools have more bytes than the limit of 200"},
		"list": {[]string{empty}, []string{`{"tools":{}}`}, `tools/list result: "tools" is not a list`},
		"page": {[]string{empty}, []string{`[]`}, "tools/list result: is a JSON array, want an object"},
	} {
		for _, pages := range [][]string{test.fits, test.over} {
			l := &listing{limits: config.Limits{MaxTools: 3, MaxPages: 4, MaxDefinition: 100, MaxListing: 200}}
			var err error
			for _, page := range pages {
				if _, err = l.takePage(json.RawMessage(page)); err != nil {
					break
				}
			}
			if &pages[0] == &test.fits[0] {
				assert.NoError(t, err, name)
			} else {
				assert.ErrorContains(t, err, test.want, name)
			}
		}
	}
	l := &listing{limits: config.Limits{MaxTools: 3, MaxPages: 4, MaxDefinition: 100, MaxListing: 200}}
	_, err := l.takePage(json.RawMessage(`{"tools":[` + definition(101) + `,` + definition(100) + `]}`))
	require.NoError(t, err)
	assert.EqualError(t, l.elements[Tools][0].Problem, "the definition has 101 bytes, more than the limit of 100")
	assert.Nil(t, l.elements[Tools][0].Raw)
	assert.NoError(t, l.elements[Tools][1].Problem)
	assert.Equal(t, 100, l.bytes, "what is not kept does not count")
}

// What is counted together is named together.
func TestWhatIsListedTooMuch(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]string{
		Tools: "it lists more tools than the limit of 1", Resources: "it lists more tools, resources and prompts than the limit of 1",
		Prompts: "it lists more tools, resources and prompts than the limit of 1", Skills: "it lists more tools, resources, prompts and skills than the limit of 1",
	} {
		l := &listing{limits: config.Limits{MaxTools: 1}, kind: kind}
		_, err := l.takePage(json.RawMessage(`{"` + lists[kind].member + `":[1,2]}`))
		assert.EqualError(t, err, want)
	}
}

// mcp-go gets a page of tools without any, and without hints that it may take ill. What the page
// has beside is passed on.
func TestPageForTheClient(t *testing.T) {
	t.Parallel()
	l := &listing{limits: config.Limits{MaxTools: 9, MaxPages: 9, MaxDefinition: 99, MaxListing: 99}, kind: Prompts}
	page, err := l.takePage(json.RawMessage(`{"prompts":[{"name":"a"}],"nextCursor":"n","cacheScope":5,"ttlMs":"x","_meta":{"a":1}}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"tools":[],"nextCursor":"n","_meta":{"a":1}}`, string(page))
	assert.Equal(t, []Element{{Raw: json.RawMessage(`{"name":"a"}`)}}, l.elements[Prompts])
	assert.Empty(t, l.elements[Tools])
	assert.False(t, l.private)
	assert.Zero(t, l.fresh)
}

// Lists are as fresh as their page that is fresh for the least time, and private if one of them
// is.
func TestHintsOfPages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pages   []string
		private bool
		fresh   time.Duration
	}{
		"none":    {[]string{`{}`, `{"cacheScope":"public"}`}, false, 0},
		"private": {[]string{`{"cacheScope":"private"}`, `{"cacheScope":"public"}`}, true, 0},
		"least":   {[]string{`{"ttlMs":5000}`, `{"ttlMs":3000}`, `{"ttlMs":4000}`, `{"ttlMs":0}`, `{}`}, false, 3 * time.Second},
		"one":     {[]string{`{"ttlMs":1}`}, false, time.Millisecond},
		"longest": {[]string{`{"ttlMs":3600001}`}, false, time.Hour},
		"no type": {[]string{`{"cacheScope":["private"],"ttlMs":"5"}`}, false, 0},
	} {
		l := new(listing)
		for _, page := range test.pages {
			var members map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(page), &members))
			l.takeHints(members)
		}
		assert.Equal(t, test.private, l.private, name)
		assert.Equal(t, test.fresh, l.fresh, name)
	}
}

// A tool that is executed as a task only can't be used with a protocol that has no tasks as we
// know them.
func TestToolThatNeedsATask(t *testing.T) {
	t.Parallel()
	for taskless, want := range map[bool]error{true: errNeedsTask, false: nil} {
		l := &listing{limits: config.Limits{MaxTools: 9, MaxPages: 9, MaxDefinition: 99, MaxListing: 999}, taskless: taskless}
		_, err := l.takePage(json.RawMessage(`{"tools":[{"name":"a","execution":{"taskSupport":"required"}},{"name":"b"}]}`))
		require.NoError(t, err)
		assert.Equal(t, want, l.elements[Tools][0].Problem)
		assert.NoError(t, l.elements[Tools][1].Problem)
		l.kind = Prompts
		_, err = l.takePage(json.RawMessage(`{"prompts":[{"name":"a","execution":{"taskSupport":"required"}}]}`))
		require.NoError(t, err)
		assert.NoError(t, l.elements[Prompts][0].Problem, "it is no tool")
	}
}

// Without another list than that of its tools, a server is used. The list that failed takes none
// of the room of those behind it.
func TestListThatFails(t *testing.T) {
	t.Parallel()
	four := `{"resources":[{"uri":"a:1"},{"uri":"a:2"},{"uri":"a:3"},{"uri":"a:4"}]}`
	long := `{"resources":[{"uri":"` + strings.Repeat("a", 600) + `"},{"uri":"` + strings.Repeat("a", 600) + `"}]}`
	for name, test := range map[string]struct{ resources, want string }{
		"too many": {four, "it lists more tools, resources and prompts than the limit of 4"},
		"too long": {long, "its tools, resources and prompts have more bytes than the limit of 1000"},
	} {
		s := both()
		s.discovered = discovers(newVersions, `{"tools":{},"resources":{},"prompts":{}}`)
		s.results["resources/list"], s.results["resources/templates/list"] = test.resources, `{"resourceTemplates":[]}`
		s.results["prompts/list"] = `{"prompts":[{"name":"` + strings.Repeat("p", 500) + `"},{"name":"q"},{"name":"r"}]}`
		srv := started(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, s, "127.0.0.1:0")}, config.Limits{MaxTools: 4, MaxListing: 1000})
		all := srv.last()
		assert.ErrorContains(t, all.Failed[Resources], "resources/list: ", name)
		assert.ErrorContains(t, all.Failed[Resources], test.want, name)
		assert.NoError(t, errors.Join(all.Failed[Tools], all.Failed[Templates], all.Failed[Prompts]), name)
		assert.Len(t, all.Elements[Tools], 1, name)
		assert.Empty(t, all.Elements[Resources], name)
		assert.Len(t, all.Elements[Prompts], 3, name)
	}
}

// The other lists take half of the time that the tools leave, together.
func TestListThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		hooks := &mcpserver.Hooks{}
		hooks.AddBeforeListTools(func(context.Context, any, *mcp.ListToolsRequest) { time.Sleep(2 * time.Second) })
		hooks.AddBeforeListResources(func(ctx context.Context, _ any, _ *mcp.ListResourcesRequest) { asked++; <-ctx.Done() })
		s := mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithResourceCapabilities(false, true), mcpserver.WithPromptCapabilities(true), mcpserver.WithHooks(hooks))
		s.AddTools(mcptest.Echo("a", ""))
		begun := time.Now()
		srv := started(t, config.Server{Name: "s", InProcess: s}, config.Limits{StartTimeout: 10 * time.Second})
		assert.Equal(t, 6*time.Second, time.Since(begun))
		all := srv.last()
		assert.Len(t, all.Elements[Tools], 1)
		assert.ErrorContains(t, all.Failed[Resources], "no answer within 4s")
		assert.ErrorContains(t, all.Failed[Prompts], "no answer within 4s")
		assert.Equal(t, 1, asked)
	})
}

// A login that another list wants, and a connection that is lost there, count for the server.
func TestListThatMatters(t *testing.T) {
	t.Parallel()
	for want, refuse := range map[error]http.HandlerFunc{
		ErrUnauthorized: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		errBroken: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		nil: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	} {
		s := both()
		s.discovered = discovers(newVersions, `{"tools":{},"resources":{}}`)
		s.results["resources/templates/list"] = `{"resourceTemplates":[]}`
		srv := newTest(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(mcp.HeaderMethod) == "resources/list" {
				_, _ = io.Copy(io.Discard, r.Body)
				refuse(w, r)
				return
			}
			s.ServeHTTP(w, r)
		}), "127.0.0.1:0")}, config.Limits{Reconnect: time.Hour})
		err := srv.Start(t.Context())
		if want == nil {
			require.NoError(t, err)
			assert.ErrorContains(t, srv.last().Failed[Resources], "500")
			continue
		}
		assert.ErrorIs(t, err, want)
	}
}

// The size of a page is that of all its lists of the name, and of nothing else.
func TestSizeOfPage(t *testing.T) {
	t.Parallel()
	for page, want := range map[string][2]int{
		`{}`: {0, 0}, `[1,2]`: {0, 0}, `null`: {0, 0}, `"tools"`: {0, 0}, `{"tools":[]}`: {1, 0}, `{"tools":[1,[2,3],{"tools":[4]}]}`: {1, 3}, `{"other":[1,2],"tools":[1]}`: {2, 1},
		`{"tools":5,"tools":{"a":[1]},"tools":"[1]","tools":null}`: {4, 0}, `{"tools":[1],"a":1,"tools":[2,3]}`: {3, 3}, `{"a":{"tools":[1]},"Tools":[1]}`: {2, 0},
	} {
		members, elements := sizeOfPage(json.RawMessage(page), "tools")
		assert.Equal(t, want, [2]int{members, elements}, page)
	}
}
