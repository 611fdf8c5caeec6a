package codemode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const scriptTool = "mcp_code__run_script"

// texted returns a tool that answers with what f says.
func texted(name, description string, f func(args map[string]any) (string, error), opts ...mcp.ToolOption) server.ServerTool {
	return server.ServerTool{
		Tool: mcp.NewTool(name, append(opts, mcp.WithDescription(description))...),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s, err := f(r.GetArguments())
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(s), nil
		},
	}
}

// shop returns a Manager with a few tools beside that of scripts.
func shop(t testing.TB, o *mcphybrid.Options, script *Options) *mcphybrid.Manager {
	if o == nil {
		o = &mcphybrid.Options{}
	}
	mgr := mcphybrid.NewManager(o)
	t.Cleanup(func() { mgr.Close() })
	require.NoError(t, mgr.AddTools("code", Tool(script)))
	counted := server.ServerTool{
		Tool: mcp.NewTool("stock", mcp.WithDescription("How many pieces of an article are in stock."), mcp.WithString("article", mcp.Required(), mcp.Description("The article's number")), mcp.WithOutputSchema[struct {
			Pieces int `json:"pieces"`
		}]()),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultStructured(map[string]any{"pieces": len(r.GetString("article", ""))}, "some"), nil
		},
	}
	require.NoError(t, mgr.AddTools("shop", counted,
		texted("echo", "Says the same.", func(args map[string]any) (string, error) {
			raw, err := json.Marshal(args)
			return string(raw), err
		}, mcp.WithString("text")),
		texted("broken", "Always fails.", func(map[string]any) (string, error) { return "", errors.New("out of paper") }),
		texted("long", "A long text.", func(map[string]any) (string, error) { return strings.Repeat("0123456789", 20_000), nil }),
		texted("secret", "Not for everybody.", func(map[string]any) (string, error) { return "the secret", nil }),
	))
	return mgr
}

// runIn runs a script as the model does, and returns what the model reads.
func runIn(t testing.TB, s *mcphybrid.Session, script string) (text string, failed bool) {
	res, err := s.Call(t.Context(), scriptTool, map[string]any{"script": script})
	require.NoError(t, err)
	return textOf(res), res.IsError
}

func TestScripts(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, script, want string }{
		{"a text is as it is", `return "a\nb"`, "a\nb"},
		{"an empty text", `return ""`, `""`},
		{"anything else is JSON", `return {a: [1, 2.5, null, undefined, true, "\u2028<"], u: undefined, f() {}, d: new Date("2026-01-02")}`, "{\"a\":[1,2.5,null,null,true,\"\\u2028<\"],\"d\":\"2026-01-02T00:00:00.000Z\"}"},
		{"structured content", `const r = await tools.mcp_shop__stock({article: "abc"}); return r.pieces + 1`, "4"},
		{"without await", `return tools.mcp_shop__stock({article: "abc"}).pieces`, "3"},
		{"a text", `return JSON.parse(await tools.mcp_shop__echo({text: "x"})).text`, "x"},
		{"by brackets", `return tools["mcp_shop__echo"]({text: "x"})`, `{"text":"x"}`},
		{"all at once", `return Promise.all(["a", "bb"].map(async a => (await tools.mcp_shop__stock({article: a})).pieces))`, "[1,2]"},
		{"a failure is thrown", `try { await tools.mcp_shop__broken() } catch (e) { return e.message }`, "mcp_shop__broken failed: out of paper"},
		{"a long result is whole", `return (await tools.mcp_shop__long({})).length`, "200000"},
		{"the last expression is returned", "const a = 2\na * 3", "6"},
		{"a function that is not called", `async () => { return 7 }`, "7"},
		{"a fence", "```js\nreturn 1\n```", "1"},
		{"nothing", `const a = 1`, textNothing},
		{"loops, classes, spread, patterns", `
			class A { #n = 1; x = {y: 2}; static z = 3; get n() { return this.#n } constructor(...a) { this.a = [...a] } }
			const {a, ...others} = {...new A(5, 6), w: 1};
			const f = ({x, ...rest}, [p, q = 4]) => ({x, rest, p, q});
			let s = 0; for (let i = 0; i < 3; i++) s += i; for (const k in {a: 1}) s += k; for (const [k, v] of Object.entries({b: 2})) s += k + v;
			let i = 5; while (true) { if (--i < 2) break; else continue } do { i++ } while (i < 4);
			const o = {}; o["k" + 1] = [1]; o.k1[3] = 2; o.k1[0]++; [o.x, o["y"]] = [8, 9];
			const l = [1, 2, 3]; l.length = 1; l.push(...new Set([4, 4, 5]));
			label: for (const x of [1, 2]) for (;;) continue label;
			return [a, others, f({x: 1, b: 2}, [3]), s, i, o, l, A.z, new A().n, new Map([[1, 2]]).get(1), [..."äb"], o?.q?.r ?? "none", typeof nothing]`,
			`[[5,6],{"x":{"y":2},"w":1},{"x":1,"rest":{"b":2},"p":3,"q":4},"3ab2",4,{"k1":[2,null,null,2],"x":8,"y":9},[1,4,5],3,1,2,["ä","b"],"none","undefined"]`},
		{"texts", "return ['a-b-c'.split('-'), 'aXbX'.replace(/x/gi, (m) => m + '!'), 'aaa'.replaceAll('a', '$&b'), 'x'.padStart(3, 'ab'), [3, 1, 2].sort(), [[1], [2, [3]]].flat(2), 'a1b22'.match(/\\d+/g), [...'a1b2'.matchAll(/[a-z](\\d)/g)].map(m => m[1]), `t${1 + 1}`, ['x', ['y', null]] + '']",
			`[["a","b","c"],"aX!bX!","ababab","abx",[1,2,3],[1,2,3],["1","22"],["1","2"],"t2","x,y,"]`},
		{"replacements", `return ["John Smith".replace(/(\w+)\s(\w+)/, "$2, $1 $$ $3 $&"), "abc".replace("b", "[$` + "`" + `|$'|$&]"), "2026-01".replace(/(?<y>\d+)-(?<m>\d+)/, "$<m>/$<y>"), "aaa".replaceAll("a", "b$"), "x".replace(/(y)?x/, "[$1]")]`, "[\"Smith, John $ $3 John Smith\",\"a[a|c|b]c\",\"01/2026\",\"b$b$b$\",\"[]\"]"},
		{"arrays", `return [Array.from({length: 2}, (_, i) => i), new Array(2).fill(0), Array(1, 2), [1, 2].concat([3], 4), [1, 2, 3].filter(x => x > 1).map(x => x * 2).reduce((a, b) => a + b), [1, [2]].flatMap(x => x), Array.isArray([]), [] instanceof Array, [3, 4].includes(4), [1, 2].toReversed(), Object.fromEntries([["a", 1]])]`,
			`[[0,1],[0,0],[1,2],[1,2,3,4],10,[1,2],true,true,true,[2,1],{"a":1}]`},
		{"dates are in UTC", `return [new Date("2026-03-04T05:06").getHours(), new Date(2026, 0, 2).toISOString(), new Date("2026-01-01") < new Date("2026-02-01"), Date.UTC(1970, 0, 1), new Date("2026-01-02T03:04:05+01:00").toISOString(), isNaN(new Date("no")), new Date(0).getTimezoneOffset()]`,
			`[5,"2026-01-02T00:00:00.000Z",true,0,"2026-01-02T02:04:05.000Z",true,0]`},
		{"JSON", `return JSON.stringify({a: [1], b: {}, c: undefined}, null, 2) + JSON.stringify({a: 1, b: 2}, ["a"]) + JSON.stringify([1], (k, v) => k ? v + 1 : v) + JSON.parse('{"__proto__": 1}').__proto__`,
			"{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}{\"a\":1}[2]1"},
		{"the names", `return Object.keys(tools).length + " " + ("mcp_shop__echo" in tools) + ("no" in tools)`, "5 truefalse"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, failed := runIn(t, shop(t, nil, nil).NewSession(nil), test.script)
			assert.Equal(t, test.want, got)
			assert.False(t, failed)
		})
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s := shop(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}}, nil).NewSession(nil)
	got, _ := runIn(t, s, `return search("how many in stock", 1)`)
	assert.Equal(t, "// How many pieces of an article are in stock.\ntools.mcp_shop__stock({\n  article: string, // The article's number\n}): {pieces: number}\n"+textUntrusted, got)
	got, _ = runIn(t, s, `return search("select:mcp_shop__echo")`)
	assert.Equal(t, "// Says the same.\ntools.mcp_shop__echo({text?: string}): string\n"+textUntrusted, got)
	got, _ = runIn(t, s, `return search("xylophone")`)
	assert.Equal(t, "No tool matches. There are tools of these servers: shop (5).", got)
	got, _ = runIn(t, s, `return search("run script")`)
	assert.NotContains(t, got, "run_script")
	assert.Equal(t, []string{scriptTool}, names(s.Tools()[:1]))
	assert.Empty(t, s.ActiveTools(), "a script activates nothing")
}

func names(tools []mcphybrid.Tool) (list []string) {
	for _, t := range tools {
		list = append(list, t.Name())
	}
	return list
}

// A model whose session has only the tool that runs scripts uses those of another session by it.
func TestWithSession(t *testing.T) {
	t.Parallel()
	work := shop(t, nil, nil).NewSession(nil)
	model := work.NewChild(&mcphybrid.SessionOptions{Access: mcphybrid.Access{Allow: []string{scriptTool, mcphybrid.PageToolName}}})
	turn, err := model.Turn(provider.Anthropic, "claude-sonnet-5")
	require.NoError(t, err)
	assert.Empty(t, turn.System)
	require.Len(t, turn.Tools, 2)
	assert.Less(t, len(turn.Tools[0].JSON), 800)
	begun := turn.Tools

	got, failed := runIn(t, model, `return tools.mcp_shop__stock({article: "abc"})`)
	assert.Contains(t, got, "not permitted")
	assert.True(t, failed)
	res, err := model.Call(WithSession(t.Context(), work), scriptTool, map[string]any{"script": `return tools.mcp_shop__stock({article: "abc"})`})
	require.NoError(t, err)
	assert.Equal(t, `{"pieces":3}`, textOf(res))
	assert.Equal(t, 1, work.Stats().Usage.Calls)

	// Its long results are cut, and read on.
	res, err = model.Call(WithSession(t.Context(), work), scriptTool, map[string]any{"script": `return (await tools.mcp_shop__long()) + "the end"`})
	require.NoError(t, err)
	assert.Less(t, len(textOf(res)), 60_000)
	assert.Contains(t, textOf(res), "the end")
	page, err := model.Call(t.Context(), mcphybrid.PageToolName, map[string]any{"id": "r1", "offset": 100_000})
	require.NoError(t, err)
	assert.Contains(t, textOf(page), "0123456789")
	turn, err = model.Turn(provider.Anthropic, "claude-sonnet-5")
	require.NoError(t, err)
	assert.Equal(t, begun, turn.Tools, "what was sent stays")
}

// A call of a script takes the way of all calls: middleware, events, access, validation.
func TestCallsAreOrdinary(t *testing.T) {
	t.Parallel()
	var approved, told []string
	mgr := shop(t, &mcphybrid.Options{
		Middleware: []mcphybrid.Middleware{func(next mcphybrid.Handler) mcphybrid.Handler {
			return func(ctx context.Context, c mcphybrid.ToolCall) (*mcp.CallToolResult, error) {
				approved = append(approved, fmt.Sprint(c.Tool.OriginalName(), " ", c.FromCode))
				if c.Tool.OriginalName() == "secret" {
					return nil, errors.New("the user does not want this call")
				}
				return next(ctx, c)
			}
		}},
		OnEvent: func(e mcphybrid.Event) {
			if e.Kind == mcphybrid.EventCall {
				told = append(told, fmt.Sprint(e.Tools[0], " ", e.FromCode, " ", e.Err != nil))
			}
		},
	}, nil)
	s := mgr.NewSession(nil)
	got, failed := runIn(t, s, "tools.mcp_shop__echo({text: \"a\"});\nreturn tools.mcp_shop__secret()")
	assert.True(t, failed)
	assert.Equal(t, "The script ended in line 2: mcp_shop__secret gave no result: the user does not want this call\nThese calls were made before, and are not undone: mcp_shop__echo.", got)
	assert.Equal(t, []string{"run_script false", "echo true", "secret true"}, approved)
	assert.Equal(t, []string{"mcp_shop__echo true false", "mcp_shop__secret true true", "mcp_code__run_script false false"}, told)

	approved = nil
	got, _ = runIn(t, s, "return tools.mcp_shop__stock({articel: 1})")
	assert.Equal(t, "The script ended in line 1: mcp_shop__stock was not called: is missing the required property \"article\". It is called by:\n"+
		"// How many pieces of an article are in stock.\ntools.mcp_shop__stock({\n  article: string, // The article's number\n}): {pieces: number}", got)
	assert.Equal(t, []string{"run_script false"}, approved)
}

// The end of a call's context reaches the call that its script makes, and ends the script.
func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	mgr := shop(t, nil, nil)
	var reached error
	require.NoError(t, mgr.AddTools("slow", server.ServerTool{Tool: mcp.NewTool("wait"), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		cancel()
		<-ctx.Done()
		reached = ctx.Err()
		return nil, ctx.Err()
	}}))
	res, err := mgr.NewSession(nil).Call(ctx, scriptTool, map[string]any{"script": `try { await tools.mcp_slow__wait() } catch {} for (;;);`})
	require.NoError(t, err)
	assert.True(t, res.IsError)
	assert.Equal(t, "The script ended in line 1: it was cancelled", textOf(res))
	require.ErrorIs(t, reached, context.Canceled)

	ctx, cancel = context.WithCancel(t.Context())
	running := make(chan struct{})
	require.NoError(t, mgr.AddTools("signal", texted("running", "Says that it runs.", func(map[string]any) (string, error) { close(running); return "", nil })))
	go func() {
		<-running
		cancel()
	}()
	res, err = mgr.NewSession(nil).Call(ctx, scriptTool, map[string]any{"script": `tools.mcp_signal__running(); for (;;);`})
	require.NoError(t, err)
	assert.Contains(t, textOf(res), "it was cancelled")
}

// A host's own limits hold, and the time of calls is not that of the script.
func TestLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options Options
		script  string
		want    string
	}{
		{"calls", Options{Calls: 2}, `tools.mcp_shop__echo(); search("a"); tools.mcp_shop__echo()`, "it made more than 2 calls: go on in another script\nThese calls were made before, and are not undone: mcp_shop__echo."},
		{"steps", Options{Steps: 1000}, `for (let i = 0; i < 1000; i++);`, "more than 1000 steps"},
		{"memory", Options{Memory: 1 << 20}, `return "x".repeat(1e6)`, "more than 1 MB"},
		{"time", Options{Time: time.Millisecond}, `for (;;);`, "longer than 1ms"},
		{"results", Options{Memory: 1 << 18}, `return tools.mcp_shop__long().length`, "MB of values"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, failed := runIn(t, shop(t, nil, &test.options).NewSession(nil), test.script)
			assert.True(t, failed)
			assert.Contains(t, got, test.want)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		mgr := mcphybrid.NewManager(nil)
		defer mgr.Close()
		require.NoError(t, mgr.AddTools("code", Tool(&Options{Time: time.Second})))
		require.NoError(t, mgr.AddTools("slow", texted("sleep", "Sleeps.", func(map[string]any) (string, error) {
			time.Sleep(40 * time.Second)
			return "slept", nil
		})))
		got, failed := runIn(t, mgr.NewSession(nil), `for (let i = 0; i < 4; i++) tools.mcp_slow__sleep(); return "all"`)
		assert.Equal(t, "all", got)
		assert.False(t, failed)
	})
}

// Scripts of one Manager run at once, each on its own.
func TestScriptsAtOnce(t *testing.T) {
	t.Parallel()
	mgr := shop(t, nil, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := mgr.NewSession(nil)
			got, failed := runIn(t, s, fmt.Sprintf(`globalThis.n ??= 0; n += %d; for (let i = 0; i < 5; i++) n += tools.mcp_shop__stock({article: "ab"}).pieces; return n`, i))
			assert.Equal(t, fmt.Sprint(i+10), got)
			assert.False(t, failed)
		})
	}
	wg.Wait()
}

// What a tool answers reaches the script whole, whatever kinds of content it has.
func TestContents(t *testing.T) {
	t.Parallel()
	mgr := shop(t, nil, nil)
	answer := func(name string, r *mcp.CallToolResult) server.ServerTool {
		return server.ServerTool{Tool: mcp.NewTool(name), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return r, nil }}
	}
	require.NoError(t, mgr.AddTools("kinds",
		answer("two", &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("a"), mcp.NewTextContent("b")}}),
		answer("none", &mcp.CallToolResult{}),
		answer("picture", &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("a"), mcp.NewImageContent("AAAA", "image/png")}}),
		answer("proto", &mcp.CallToolResult{RawStructuredContent: json.RawMessage(`{"__proto__": {"x": 1}, "constructor": 2}`)}),
		answer("big", &mcp.CallToolResult{RawStructuredContent: json.RawMessage(`{"n": 12345678901234567890}`)}),
	))
	got, _ := runIn(t, mgr.NewSession(nil), `const r = tools.mcp_kinds__proto(); return [tools.mcp_kinds__two(), tools.mcp_kinds__none(), tools.mcp_kinds__picture()[1].mimeType, r.x === undefined, r.constructor, {}.x === undefined]`)
	assert.Equal(t, `["a\nb","","image/png",true,2,true]`, got)
}
