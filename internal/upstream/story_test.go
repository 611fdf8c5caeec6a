package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// A story is all that can be seen of a server over HTTP: what is sent to it, its states, its
// lists, what is logged, and what callers get, each with its time. What happens at one moment
// is in the order of these.
type story struct {
	t       *testing.T
	answers map[string][]string // by method: each once, the last for ever
	begun   time.Time
	server  *Server

	older    bool // it speaks over the older transport: answers come on the stream
	declares bool // what requests declare is shown

	mu     sync.Mutex
	lines  []storyLine
	text   strings.Builder
	stream *io.PipeWriter // of GET
}

type storyLine struct {
	at   time.Duration
	kind int
	text string
}

const (
	aStep = iota
	anEnd // of a session
	aMessage
	aSubscription // in any order
	aState
	aList
	aLog
	aResult
	anUpdate // in any order
	aLook    // at the state
)

func (s *story) say(kind int, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, storyLine{time.Since(s.begun), kind, fmt.Sprintf(format, args...)})
}

// flush writes what has happened.
func (s *story) flush() {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.lines, func(a, b storyLine) int {
		same := cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind))
		if same == 0 && (a.kind == aSubscription || a.kind == anUpdate) {
			return strings.Compare(a.text, b.text)
		}
		return same
	})
	for _, line := range s.lines {
		if line.kind == aStep {
			fmt.Fprintf(&s.text, "%v %s\n", line.at, line.text)
		} else {
			fmt.Fprintf(&s.text, "  %v %s\n", line.at, line.text)
		}
	}
	s.lines = nil
}

func (s *story) step(format string, args ...any) { s.flush(); s.say(aStep, format, args...) }

func (s *story) Write(line []byte) (int, error) {
	s.say(aLog, "log: %s", bytes.TrimSpace(line))
	return len(line), nil
}

// says sets the next answers to a method.
func (s *story) says(method string, answers ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[method] = answers
}

// next returns the next answer to a method.
func (s *story) next(method string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.answers[method]
	if len(all) == 0 {
		return "error -32601 there is no such method"
	}
	if len(all) > 1 {
		s.answers[method] = all[1:]
	}
	return all[0]
}

func (s *story) RoundTrip(r *http.Request) (*http.Response, error) {
	in := struct {
		ID     json.RawMessage            `json:"id"`
		Method string                     `json:"method"`
		Params map[string]json.RawMessage `json:"params"`
		Result json.RawMessage            `json:"result"` // an answer to the server
		Error  json.RawMessage            `json:"error"`
	}{Method: r.Method}
	if r.Method == http.MethodPost {
		require.NoError(s.t, json.NewDecoder(r.Body).Decode(&in))
	}
	kind := aMessage
	switch in.Method {
	case http.MethodDelete:
		kind = anEnd
	case "resources/subscribe", "resources/unsubscribe":
		kind = aSubscription
	}
	var more strings.Builder
	for _, name := range []string{"Authorization", "X-Own", "Mcp-Session-Id", "Mcp-Param-Region"} {
		if value := r.Header.Get(name); value != "" {
			fmt.Fprintf(&more, " %s: %s", name, value)
		}
	}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(in.Params["_meta"], &meta)
	if can := meta[mcp.MetaKeyClientCapabilities]; s.declares && can != nil {
		fmt.Fprintf(&more, " can: %s", can)
	}
	if in.Result != nil || in.Error != nil {
		fmt.Fprintf(&more, " answer to %s: %s%s", in.ID, in.Result, in.Error)
	}
	delete(in.Params, "_meta")
	delete(in.Params, "clientInfo") // with the version of the program
	params, err := json.Marshal(in.Params)
	require.NoError(s.t, err)
	if in.Method != http.MethodGet { // mcp-go's goroutine asks for the stream at any time
		s.say(kind, "> %s %s%s", in.Method, params, more.String())
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp, err := s.answer(r, in.ID, s.next(in.Method))
	if !s.older || err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	if r.Method == http.MethodGet {
		go fmt.Fprint(s.stream, "event: endpoint\ndata: /messages\n\n")
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	go fmt.Fprintf(s.stream, "data: %s\n\n", bytes.ReplaceAll(bytes.TrimPrefix(body, []byte("data: ")), []byte("\n"), nil))
	resp.StatusCode, resp.Body = http.StatusAccepted, http.NoBody
	return resp, nil
}

// answer returns the answer that a line says: "result JSON", "error CODE TEXT [| DATA]", "status CODE
// [NAME: VALUE]", "events MESSAGE...", where "wait" is a second, "stream [acknowledged]", "hangs" or "fails".
func (s *story) answer(r *http.Request, id json.RawMessage, said string) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: http.NoBody, ContentLength: -1}
	body := func(format string, args ...any) (*http.Response, error) {
		resp.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(format, args...)))
		return resp, nil
	}
	what, rest, _ := strings.Cut(said, " ")
	switch what {
	case "result":
		if session, after, ok := strings.Cut(rest, " | "); ok {
			resp.Header.Set("Mcp-Session-Id", session)
			rest = after
		}
		return body(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, rest)
	case "error":
		code, text, _ := strings.Cut(rest, " ")
		if text, data, ok := strings.Cut(text, " | "); ok {
			return body(`{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":%q,"data":%s}}`, id, code, text, data)
		}
		return body(`{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":%q}}`, id, code, text)
	case "status":
		code, header, _ := strings.Cut(rest, " ")
		_, err := fmt.Sscan(code, &resp.StatusCode)
		require.NoError(s.t, err)
		if name, value, ok := strings.Cut(header, ": "); ok {
			resp.Header.Set(name, value)
		}
		return resp, nil
	case "events":
		resp.Header.Set("Content-Type", "text/event-stream")
		out, in := io.Pipe()
		resp.Body = out
		go func() {
			defer in.Close()
			for message := range strings.SplitSeq(rest, " | ") {
				if message == "wait" {
					time.Sleep(time.Second)
				} else if _, err := fmt.Fprintf(in, "data: %s\n\n", strings.ReplaceAll(message, "$ID", string(id))); err != nil {
					return // nobody reads on
				}
			}
		}()
		return resp, nil
	case "stream":
		resp.Header.Set("Content-Type", "text/event-stream")
		out, in := io.Pipe()
		resp.Body = out
		context.AfterFunc(r.Context(), func() { in.Close() })
		if rest == "acknowledged" {
			go fmt.Fprintf(in, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":{%q:%s}}}\n\n", mcp.MetaKeySubscriptionID, id)
		}
		s.mu.Lock()
		s.stream = in
		s.mu.Unlock()
		return resp, nil
	case "hangs":
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return nil, errors.New("the host is out of reach")
}

// push sends a message on the stream.
func (s *story) push(message string) {
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	_, err := fmt.Fprintf(stream, "data: %s\n\n", message)
	require.NoError(s.t, err)
}

func (s *story) open(cfg Config, l config.Limits) *Server {
	cfg.Name, cfg.URL, cfg.HTTPClient = "s", "https://h.example/mcp", &http.Client{Transport: s}
	cfg.Log = slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	s.begun = time.Now()
	s.server = New(cfg, l, func(ctx context.Context, all List) error {
		var parts []string
		for kind, elements := range all.Elements {
			for _, e := range elements {
				parts = append(parts, fmt.Sprintf("%s %s %v", lists[kind].member, e.Raw, e.Problem))
			}
			if err := all.Failed[kind]; err != nil {
				parts = append(parts, fmt.Sprintf("%s failed: %v", lists[kind].member, err))
			}
		}
		s.say(aList, "lists %s; instructions %q, private %v, changing %v, skilled %v", strings.Join(parts, "; "), all.Instructions, all.Private, all.Changing, all.Skilled)
		return ctx.Err()
	})
	s.server.OnStatus(func(_ context.Context, st Status) { s.state(aState, "is", st) })
	s.t.Cleanup(s.server.Close)
	return s.server
}

func (s *story) state(kind int, verb string, st Status) {
	retry := "never"
	if !st.Retry.IsZero() {
		retry = st.Retry.Sub(s.begun).String()
	}
	s.say(kind, "%s %s since %v, %d failures, tries again %s, %v", verb, st.State, st.Since.Sub(s.begun), st.Failures, retry, st.Err)
}

func (s *story) result(got any, err error) {
	text, _ := json.Marshal(got)
	var marks []string
	for _, target := range []error{ErrDown, ErrClosed, ErrUnauthorized, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, target) {
			marks = append(marks, target.Error())
		}
	}
	if err == nil {
		s.say(aResult, "= %s", text)
	} else {
		s.say(aResult, "= %s, %v; it is %q", text, err, marks)
	}
}

// call calls a tool and shows the result and the state after it.
func (s *story) call(ctx context.Context, what string, tool Tool) {
	s.step("%s", what)
	result, err := s.server.Call(ctx, tool, json.RawMessage(`{"a":1}`))
	s.result(result, err)
	synctest.Wait()
	s.state(aLook, "then", s.server.Status())
}

func (s *story) wait(d time.Duration, why string) {
	s.step("wait %v: %s", d, why)
	time.Sleep(d)
	synctest.Wait()
	s.state(aLook, "then", s.server.Status())
}

func (s *story) done(name string) {
	s.t.Helper()
	s.flush()
	golden.Compare(s.t, name, s.text.String())
}

const before2026 = `result session-1 | {"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"Use me."}`

func newStory(t *testing.T, what string) *story {
	s := &story{t: t, answers: map[string][]string{
		"server/discover": {"error -32601 no"}, "initialize": {before2026}, "notifications/initialized": {"status 202"}, "GET": {"stream"}, "DELETE": {"status 200"}, "logging/setLevel": {"result {}"},
		"tools/list": {`result {"tools":[{"name":"a"}]}`}, "resources/list": {`result {"resources":[{"uri":"u"}]}`}, "resources/templates/list": {"error -32601 no"}, "prompts/list": {"error -32000 broken"},
		"tools/call": {`result {"content":[{"type":"text","text":"ok"}]}`},
	}}
	s.text.WriteString(what + " Times are from its beginning; sent is what stands after >.\n\n")
	return s
}

func storyLimits() config.Limits {
	return config.Limits{
		StartTimeout: 20 * time.Second, CallTimeout: 10 * time.Second, MaxMessage: 1 << 20, MaxValues: 10_000, MaxDefinition: 1 << 16, MaxListing: 1 << 20, MaxTools: 100, MaxPages: 10,
		MaxUnasked: 100, MaxSubscriptions: 2, MaxTimeouts: 2, Reconnect: time.Second, Refresh: 10 * time.Minute,
	}
}

// A server that works, is called, changes its lists, and is lost and found again.
func TestGoldenLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "A server over HTTP that works, is called, changes its lists, and is lost and found again.")
		srv := s.open(Config{Server: config.Server{LogLevel: mcp.LoggingLevelInfo, Headers: map[string]string{"X-Own": "own"}}}, storyLimits())
		once, again := Tool{Name: "a"}, Tool{Name: "a", Repeatable: true}
		s.state(aLook, "is", srv.Status())
		s.call(t.Context(), "a call before the start", once)
		s.step("start")
		s.result(nil, srv.Start(t.Context()))
		s.call(t.Context(), "a call", once)
		s.step("a change is announced")
		s.says("tools/list", `result {"tools":[{"name":"a"},{"name":"b"}]}`)
		s.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.wait(time.Second, "it is listed")
		s.step("another process has other lists, twice")
		s.result(srv.ListAgain(), nil)
		s.wait(0, "")
		s.result(srv.ListAgain(), nil)
		s.wait(2*time.Second, "the second listing is later")
		s.says("tools/call", "error -32602 bad arguments", "status 500", "status 404", `result {"content":[]}`)
		s.call(t.Context(), "a call with an error", once)
		s.call(t.Context(), "a call with status 500", once)
		s.call(t.Context(), "a call after the end of the session, which can be repeated", again)
		s.says("tools/call", "status 404", `result {"content":[]}`)
		s.call(t.Context(), "one that can't be repeated", once)
		s.wait(2*time.Second, "it connects again")
		s.says("tools/call", "fails")
		s.says("initialize", "fails")
		s.call(t.Context(), "the network fails", again)
		for range 3 {
			s.wait(3*time.Second, "it tries again and again")
		}
		s.call(t.Context(), "a call meanwhile", once)
		s.step("connect")
		s.result(nil, srv.Connect(t.Context()))
		s.says("initialize", before2026)
		s.says("tools/call", `result {"content":[]}`)
		s.wait(30*time.Second, "the network is back")
		s.call(t.Context(), "a call", once)
		s.step("restart")
		s.result(nil, srv.Restart(t.Context()))
		s.says("tools/list", "error -32000 not now", `result {"tools":[]}`)
		s.wait(10*time.Minute, "the lists are read again, first in vain")
		s.says("tools/call", "hangs")
		for range 3 {
			s.call(t.Context(), "a call without an answer", once)
		}
		s.wait(10*time.Second, "the pause")
		s.says("tools/call", `result {"content":[]}`)
		s.call(t.Context(), "a call is tried", once)
		s.says("tools/call", "status 429 Retry-After: 5", `result {"content":[]}`)
		s.call(t.Context(), "too many calls", once)
		s.call(t.Context(), "a call in the pause", once)
		s.wait(5*time.Second, "the pause")
		s.call(t.Context(), "a call", once)
		s.call(t.Context(), "a call that is barred", Tool{Name: "a", Bar: func() error { return errors.New("it may not be called") }})
		s.says("tools/call", "hangs")
		gone, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		s.call(gone, "a caller that gives up", once)
		s.step("close")
		srv.Close()
		s.state(aLook, "is", srv.Status())
		s.call(t.Context(), "a call after the end", once)
		s.done("life.golden")
	})
}

// What a server of the newer protocol is asked for, and how it rests.
func TestGoldenModern(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "A server of protocol 2026-07-28, all that it can be asked for, and how it rests.")
		s.says("server/discover", "result "+discovers(`["2026-07-28"]`, `{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"extensions":{"io.modelcontextprotocol/skills":{}}}`))
		s.says("subscriptions/listen", "stream acknowledged")
		s.says("tools/list", `result {"resultType":"complete","tools":[{"name":"a"},{"name":"m","inputSchema":{"type":"object","properties":{"a":{"type":"integer","x-mcp-header":"Region"}}}},{"name":"t","execution":{"taskSupport":"required"}}],"ttlMs":3000000,"cacheScope":"private"}`)
		s.says("resources/list", `result {"resultType":"complete","resources":[{"uri":"u"}]}`)
		s.says("resources/read", `result {"resultType":"complete","contents":[{"uri":"u","text":"x"}]}`, "error -32002 no such resource")
		s.says("prompts/list", `result {"resultType":"complete","prompts":[{"name":"p"}],"nextCursor":"2"}`, `result {"resultType":"complete","prompts":[]}`)
		s.says("prompts/get", `result {"resultType":"complete","messages":[]}`, "status 400")
		s.says("completion/complete", `result {"resultType":"complete","completion":{"values":["v"]}}`)
		s.says("skills/list", `result {"resultType":"complete","skills":[{"uri":"skill://s/SKILL.md"}]}`)
		s.says("skills/get", `result {"resultType":"complete","skill":{"uri":"skill://s/SKILL.md"}}`, `result {"resultType":"complete"}`, "error -32002 no such skill")
		limits := storyLimits()
		limits.IdleTimeout = time.Hour
		token := "first-token"
		srv := s.open(Config{
			Server: config.Server{HeaderFunc: func(context.Context) (http.Header, error) {
				if token == "" {
					return nil, errors.New("no token today")
				}
				return http.Header{"Authorization": {"Bearer " + token}}, nil
			}},
			Unauthorized: func(scopes []string) error { return fmt.Errorf("%w at the desk, for %q", ErrUnauthorized, scopes) },
		}, limits)
		s.step("its tools are known from elsewhere")
		s.result(srv.SetCached(), nil)
		s.call(t.Context(), "a call starts it", Tool{Name: "a"})
		s.result(srv.SetCached(), nil)
		ctx := WithMeta(t.Context(), map[string]any{"k": 1, "progressToken": "theirs"})
		s.call(ctx, "a call whose argument is a header too", Tool{Name: "m"})
		bar := func() error { return nil }
		for range 2 {
			s.step("read")
			read, err := srv.Read(t.Context(), bar, "u")
			s.result(read, err)
		}
		for range 2 {
			s.step("a prompt")
			prompt, err := srv.Prompt(t.Context(), bar, "p", map[string]string{"x": "y"})
			s.result(prompt, err)
		}
		s.step("a completion")
		completion, err := srv.Complete(t.Context(), bar, mcp.CompleteParams{Ref: mcp.PromptReference{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteArgument{Name: "x", Value: "y"}})
		s.result(completion, err)
		for range 3 {
			s.step("a skill")
			skill, err := srv.Skill(t.Context(), bar, "skill://s/SKILL.md")
			s.result(skill, err)
		}
		s.step("a subscription")
		stop, err := srv.Subscribe(t.Context(), bar, "u", func(uri string) { s.say(anUpdate, "told of %s", uri) })
		s.result(nil, err)
		s.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u"}}`)
		s.wait(2*time.Hour, "it does not rest meanwhile")
		s.call(t.Context(), "a call that is barred", Tool{Name: "a", Bar: func() error { return errors.New("it may not be called") }})
		stop()
		s.wait(2*time.Hour, "it rests")
		listed := s.answers["tools/list"]
		s.says("tools/list", "hangs", listed[0])
		s.call(t.Context(), "a call starts it again, and it takes too long", Tool{Name: "a"})
		s.wait(15*time.Second, "it takes too long")
		s.call(t.Context(), "a call starts it again", Tool{Name: "a"})
		s.says("tools/call", "status 401", `result {"resultType":"complete","content":[]}`)
		s.says("tools/list", "status 401")
		s.call(t.Context(), "it refuses the token", Tool{Name: "a"})
		s.wait(2*time.Second, "it refuses it still")
		s.says("tools/list", listed...)
		token = "second-token"
		s.step("somebody has logged in")
		s.result(nil, srv.Again(t.Context()))
		s.wait(time.Second, "")
		s.call(t.Context(), "a call", Tool{Name: "a"})
		s.says("tools/call", `status 403 WWW-Authenticate: Bearer error="insufficient_scope", scope="write second-token"`)
		s.call(t.Context(), "it lacks a scope", Tool{Name: "a"})
		token = ""
		s.call(t.Context(), "there is no token", Tool{Name: "a"})
		token = "third-token"
		s.says("tools/call", "error -32000 bad third-token")
		s.call(t.Context(), "an error with the token", Tool{Name: "a"})
		s.step("logged out")
		s.result(nil, srv.LoggedOut(t.Context()))
		s.wait(2*time.Second, "")
		s.done("modern.golden")
	})
}

// Subscriptions to resources, over several connections.
func TestGoldenSubscriptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "Subscriptions to resources, over several connections.")
		s.says("resources/subscribe", "result {}")
		s.says("resources/unsubscribe", "result {}")
		limits := storyLimits()
		limits.IdleTimeout = time.Hour
		srv := s.open(Config{}, limits)
		s.result(nil, srv.Start(t.Context()))
		var stops []func()
		subscribe := func(name, uri string) {
			s.step("%s subscribes to %s", name, uri)
			ctx, end := context.WithTimeout(t.Context(), 5*time.Second)
			defer end()
			stop, err := srv.Subscribe(ctx, nil, uri, func(uri string) { s.say(anUpdate, "%s is told of %s", name, uri) })
			s.result(stop != nil, err)
			if stop != nil {
				stops = append(stops, stop)
			}
		}
		updated := func(uri string) {
			s.step("%s is updated", uri)
			s.push(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`, uri))
		}
		subscribe("ann", "x://a")
		subscribe("bob", "x://a")
		subscribe("cid", "x://b/")
		subscribe("dan", "x://c")
		for _, uri := range []string{"x://a", "x://a/part", "x://ab", "x://a/", "x://b", "x://b/part", "x://b/", "x://c", ""} {
			updated(uri)
		}
		s.step("ann stops, twice")
		stops[0]()
		stops[0]()
		updated("x://a")
		s.says("tools/call", "status 404")
		s.call(t.Context(), "the session ends", Tool{Name: "a"})
		s.wait(3*time.Second, "there is another")
		updated("x://a")
		s.step("bob stops, so another is possible")
		stops[1]()
		s.wait(0, "")
		s.says("resources/subscribe", "error -32000 no")
		subscribe("eve", "x://e")
		s.says("resources/subscribe", "hangs")
		subscribe("fay", "x://f")
		s.says("resources/subscribe", "result {}")
		subscribe("gus", "x://g")
		s.step("close")
		srv.Close()
		subscribe("hal", "x://a")
		s.done("subscriptions.golden")
	})
}

// How a start goes, by what the server answers.
func TestGoldenStarts(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	all.WriteString("How a start goes, by what a server over HTTP answers to some methods.\n\n")
	modern := "result " + discovers(`["2026-07-28"]`, `{"tools":{}}`)
	complete := `result {"resultType":"complete","tools":[{"name":"a"}]}`
	for _, c := range []struct {
		what    string
		cfg     Config
		answers map[string]string
		wait    time.Duration // afterwards
	}{
		{what: "nothing is there", answers: map[string]string{"server/discover": "fails", "initialize": "fails"}},
		{what: "it hangs", answers: map[string]string{"server/discover": "hangs", "initialize": "hangs"}},
		{what: "it hangs at first", answers: map[string]string{"server/discover": "hangs"}},
		{what: "it limits the rate", answers: map[string]string{"server/discover": "status 429 Retry-After: 30", "initialize": "status 429 Retry-After: 30"}},
		{what: "it is not available", answers: map[string]string{"server/discover": "status 503 Retry-After: 1", "initialize": "status 503 Retry-After: 1"}},
		{what: "it has an error", answers: map[string]string{"server/discover": "status 500", "initialize": "status 500"}},
		{what: "it is of the older transport, which it lacks too", answers: map[string]string{"server/discover": "status 405", "initialize": "status 405", "GET": "status 404"}},
		{what: "it wants a login", answers: map[string]string{"server/discover": "status 401", "initialize": "status 401"}},
		{what: "it wants a login at first", answers: map[string]string{"server/discover": "status 401", "initialize": "error -32601 no such method"}},
		{what: "it wants a login for lists", answers: map[string]string{"tools/list": "status 401"}},
		{what: "it wants a login for resources", answers: map[string]string{"resources/list": "status 401"}},
		{what: "it refuses", answers: map[string]string{"initialize": "error -32602 not you"}},
		{what: "it redirects", answers: map[string]string{"server/discover": "status 307 Location: https://other.example/", "initialize": "status 307 Location: https://other.example/"}},
		{what: "it lists no tools", answers: map[string]string{"tools/list": "error -32601 no such method"}},
		{what: "its list of tools is broken", answers: map[string]string{"tools/list": `result {"tools":5}`}},
		{what: "its resources hang", answers: map[string]string{"resources/list": "hangs"}},
		{what: "the network fails for resources", answers: map[string]string{"resources/list": "fails"}},
		{what: "it is of the newer protocol", answers: map[string]string{"server/discover": modern, "tools/list": complete}},
		{what: "it is of the newer protocol, and of ours of the older", cfg: Config{Server: config.Server{Protocol: "2025-11-25"}}, answers: map[string]string{"server/discover": modern}},
		{what: "it is of the older protocol, and ours of the newer", cfg: Config{Server: config.Server{Protocol: "2026-07-28"}}},
		{what: "it speaks another protocol than ours", cfg: Config{Server: config.Server{Protocol: "2025-06-18"}}},
		{what: "it speaks no protocol that we know", answers: map[string]string{"server/discover": "result " + discovers(`["2099-01-01"]`, `{"tools":{}}`), "initialize": `result {"protocolVersion":"2099-01-01","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`}},
		{what: "it refuses the version that it offers", answers: map[string]string{"server/discover": modern, "tools/list": "error -32022 unsupported protocol version"}},
		{what: "it announces changes, and has no such stream", answers: map[string]string{"server/discover": "result " + discovers(`["2026-07-28"]`, `{"tools":{"listChanged":true}}`), "tools/list": complete, "subscriptions/listen": "hangs"}},
		{what: "it announces changes, and knows no subscriptions: it is not asked again", wait: 5 * time.Minute, answers: map[string]string{"server/discover": "result " + discovers(`["2026-07-28"]`, `{"tools":{"listChanged":true}}`), "tools/list": complete, "subscriptions/listen": "error -32601 no such method"}},
		{what: "it announces changes, and its stream fails: it is asked again", wait: 5 * time.Second, answers: map[string]string{"server/discover": "result " + discovers(`["2026-07-28"]`, `{"tools":{"listChanged":true}}`), "tools/list": complete, "subscriptions/listen": "status 500"}},
		{what: "its configuration is wrong", cfg: Config{Invalid: errors.New("no such variable")}},
		{what: "a login that nobody has named", cfg: Config{Unauthorized: func([]string) error { return fmt.Errorf("%w: at the desk", ErrUnauthorized) }}, answers: map[string]string{"server/discover": "status 401", "initialize": "status 401"}},
		{what: "its instructions are long", answers: map[string]string{"initialize": `result {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"},"instructions":"` + strings.Repeat("é", MaxInstructions/2+1) + `"}`}},
		{what: "it has no logging", cfg: Config{Server: config.Server{LogLevel: mcp.LoggingLevelError}}, answers: map[string]string{"logging/setLevel": "error -32601 no"}},
		{what: "the network fails for logging", cfg: Config{Server: config.Server{LogLevel: mcp.LoggingLevelError}}, answers: map[string]string{"logging/setLevel": "status 404"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStory(t, "")
			s.text.Reset()
			for method, said := range c.answers {
				s.says(method, said)
			}
			limits := storyLimits()
			limits.Reconnect = -1
			srv := s.open(c.cfg, limits)
			s.step("%s", c.what)
			s.result(nil, srv.Start(t.Context()))
			synctest.Wait()
			s.state(aLook, "then", srv.Status())
			if err := srv.NotReady(t.Context()); err != nil {
				s.say(aResult, "not ready: %v", err)
			}
			time.Sleep(c.wait)
			s.flush()
			all.WriteString(s.text.String() + "\n")
		})
	}
	golden.Compare(t, "starts.golden", all.String())
}

// A server over the older transport, where answers come on one stream.
func TestGoldenOlder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "A server over the older transport, where answers come on one stream.")
		s.older = true
		s.says("initialize", `result {"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}`)
		s.says("resources/subscribe", "result {}")
		s.says("resources/unsubscribe", "result {}")
		var noToken error
		srv := s.open(Config{Server: config.Server{SSE: true, HeaderFunc: func(context.Context) (http.Header, error) { return nil, noToken }}}, storyLimits())
		once, again := Tool{Name: "a"}, Tool{Name: "a", Repeatable: true}
		s.step("start")
		s.result(nil, srv.Start(t.Context()))
		s.call(t.Context(), "a call", once)
		s.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.wait(time.Second, "it has announced a change")
		s.step("a subscription")
		stop, err := srv.Subscribe(t.Context(), nil, "u", func(uri string) { s.say(anUpdate, "told of %s", uri) })
		s.result(nil, err)
		s.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u"}}`)
		s.push(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
		s.wait(time.Second, "it has asked, which nobody answers")
		stop()
		s.says("tools/call", "error -32000 no", "status 500", "status 401", "status 429 Retry-After: 3", "hangs", `result {"content":[]}`)
		s.call(t.Context(), "an error", once)
		s.call(t.Context(), "status 500", once)
		s.call(t.Context(), "status 401", once)
		s.wait(time.Second, "it lists, so it works")
		s.call(t.Context(), "status 429", once)
		s.wait(3*time.Second, "the pause")
		s.call(t.Context(), "no answer", once)
		s.call(t.Context(), "a call", once)
		s.step("the stream ends")
		s.mu.Lock()
		stream := s.stream
		s.mu.Unlock()
		require.NoError(t, stream.Close())
		s.wait(2*time.Second, "there is another")
		s.says("tools/call", "fails", `result {"content":[]}`)
		s.call(t.Context(), "the network fails, and the call may be repeated", again)
		noToken = errors.New("no token today")
		s.call(t.Context(), "there is no token for a call", once)
		s.step("restart, where there is none for the stream")
		s.result(nil, srv.Restart(t.Context()))
		noToken = nil
		s.says("GET", "status 401")
		s.says("initialize", "fails")
		s.step("restart, where a login is wanted now")
		s.result(nil, srv.Restart(t.Context()))
		s.says("GET", "hangs")
		s.step("restart, where the stream does not begin")
		s.result(nil, srv.Restart(t.Context()))
		s.says("GET", "fails")
		s.step("restart, where the network fails")
		s.result(nil, srv.Restart(t.Context()))
		s.done("older.golden")
	})
}

// What becomes of calls, by what the server answers.
func TestGoldenCalls(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	all.WriteString("What becomes of calls, by what a server over HTTP answers.\n\n")
	const ok = `{"content":[{"type":"text","text":"ok"}]}`
	values := func(n int) string {
		return `{"content":[],"structuredContent":{"list":[` + strings.Repeat("1,", n-4) + `1]}}`
	}
	task := func(status, more string) string {
		return fmt.Sprintf(`{"taskId":"t1","status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null%s}`, status, more)
	}
	for _, c := range []struct {
		what    string
		tool    Tool
		answers map[string][]string
	}{
		{what: "a result with all that it may have", answers: map[string][]string{"tools/call": {`result {"content":[{"type":"text","text":"a"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"structuredContent":{"a":1},"isError":true,"_meta":{"m":1}}`}}},
		{what: "a result that is none", answers: map[string][]string{"tools/call": {"result 5"}}},
		{what: "no result", answers: map[string][]string{"tools/call": {"result null"}}},
		{what: "an unknown kind of content", answers: map[string][]string{"tools/call": {`result {"content":[{"type":"odd"}]}`}}},
		{what: "as many values as are decoded", answers: map[string][]string{"tools/call": {"result " + values(9_000)}}},
		{what: "more values than the limit", answers: map[string][]string{"tools/call": {"result " + values(10_001)}}},
		{what: "events", answers: map[string][]string{"tools/call": {`events {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}} | {"jsonrpc":"2.0","id":$ID,"result":` + ok + `}`}}},
		{what: "progress, also of nobody", answers: map[string][]string{"tools/call": {`events {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":1,"total":2,"message":"half"}} | {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"9","progress":1}} | {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}} | {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":"x"}} | {"jsonrpc":"2.0","id":$ID,"result":` + ok + `}`}}},
		{what: "events without an answer", answers: map[string][]string{"tools/call": {`events {"jsonrpc":"2.0","method":"notifications/message"}`}}},
		{what: "a question, which nobody answers", answers: map[string][]string{"tools/call": {`events {"jsonrpc":"2.0","id":99,"method":"roots/list"} | wait | {"jsonrpc":"2.0","id":$ID,"result":` + ok + `}`}, "POST": {"status 202"}}},
		{what: "a change of tools before the result", answers: map[string][]string{"tools/call": {`events {"jsonrpc":"2.0","method":"notifications/tools/list_changed"} | {"jsonrpc":"2.0","id":$ID,"result":` + ok + `}`}}},
		{what: "a change of tools, whose listing hangs", answers: map[string][]string{"tools/call": {`events {"jsonrpc":"2.0","method":"notifications/tools/list_changed"} | {"jsonrpc":"2.0","id":$ID,"result":` + ok + `}`}, "tools/list": {"hangs"}}},
		{what: "status 400", answers: map[string][]string{"tools/call": {"status 400"}}},
		{what: "status 403 without scopes", answers: map[string][]string{"tools/call": {"status 403"}}},
		{what: "status 503 without a time", answers: map[string][]string{"tools/call": {"status 503"}}},
		{what: "status 204", answers: map[string][]string{"tools/call": {"status 204"}}},
		{what: "a page to open first", answers: map[string][]string{"tools/call": {`error -32042 open it`}}},
		{what: "a task", tool: Tool{Task: true}, answers: map[string][]string{"tools/call": {`result {"task":` + task("working", "") + `}`}, "tasks/get": {"result " + task("working", ""), "result " + task("working", `,"pollInterval":1`), "result " + task("working", `,"pollInterval":100000`), "result " + task("completed", "")}, "tasks/result": {"result " + ok}}},
		{what: "a task that fails", tool: Tool{Task: true}, answers: map[string][]string{"tools/call": {`result {"task":` + task("working", `,"pollInterval":300`) + `}`}, "tasks/get": {"result " + task("failed", "")}, "tasks/result": {"error -32000 it broke"}}},
		{what: "a task that wants input", tool: Tool{Task: true}, answers: map[string][]string{"tools/call": {`result {"task":` + task("input_required", "") + `}`}, "tasks/result": {"result " + ok}}},
		{what: "a task that is executed at once", tool: Tool{Task: true}, answers: map[string][]string{"tools/call": {"result " + ok}}},
		{what: "a task without an id", tool: Tool{Task: true}, answers: map[string][]string{"tools/call": {`result {"task":{"status":"working"}}`}}},
		{what: "a task that is none", tool: Tool{Task: true}, answers: map[string][]string{"tools/call": {`result {"task":5}`}}},
		{what: "a task that nobody knows", tool: Tool{Task: true}, answers: map[string][]string{"tools/call": {`result {"task":` + task("working", "") + `}`}, "tasks/get": {"error -32602 no such task"}}},
		{what: "a task that takes too long", tool: Tool{Task: true}, answers: map[string][]string{"tools/call": {`result {"task":` + task("working", "") + `}`}, "tasks/get": {"result " + task("working", "")}, "tasks/cancel": {"result " + task("cancelled", "")}}},
		{what: "input, which nobody gives", answers: map[string][]string{"tools/call": {`result {"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStory(t, "")
			srv := s.open(Config{Server: config.Server{OnNotification: func(n mcp.JSONRPCNotification) { s.say(anUpdate, "the host hears of %s", n.Method) }}}, storyLimits())
			require.NoError(t, srv.Start(t.Context()))
			synctest.Wait()
			s.mu.Lock()
			s.lines = nil
			s.text.Reset()
			s.mu.Unlock()
			for method, said := range c.answers {
				s.says(method, said...)
			}
			c.tool.Name = "a"
			ctx := WithProgress(t.Context(), func(p mcp.ProgressNotificationParams) {
				s.say(anUpdate, "progress %v of %v, %s", p.Progress, p.Total, p.Message)
			})
			s.step("%s", c.what)
			result, err := srv.Call(ctx, c.tool, json.RawMessage("{}"))
			s.result(shortened(result), err)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			s.state(aLook, "then", srv.Status())
			s.flush()
			all.WriteString(s.text.String() + "\n")
		})
	}
	golden.Compare(t, "calls.golden", all.String())
}

// shortened returns a result as it can be shown.
func shortened(r *mcp.CallToolResult) any {
	raw, _ := json.Marshal(r)
	if len(raw) > 500 {
		return fmt.Sprintf("%d bytes, structured as %T", len(raw), r.StructuredContent)
	}
	return r
}

// What a server asks during calls, who answers it, and what requests declare.
func TestGoldenAsked(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	all.WriteString("What a server asks during calls, and what becomes of them. The host has hooks for pages, forms and roots.\n\n")
	const ok = `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`
	modern := "result " + discovers(`["2026-07-28"]`, `{"tools":{}}`)
	hooks := ask.Hooks{
		Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///project"}}, nil },
		Elicit: func(_ context.Context, _ ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			r := new(mcp.ElicitationResult)
			r.Action = mcp.ElicitationResponseActionAccept
			if p.Message == "decline" {
				r.Action = mcp.ElicitationResponseActionDecline
			}
			return r, nil
		},
	}
	input := func(requests string) string {
		return `result {"resultType":"input_required","requestState":"s","inputRequests":` + requests + `}`
	}
	page := func(message string) string {
		return fmt.Sprintf(`error -32042 open it | {"elicitations":[{"mode":"url","message":%q,"url":"https://h.example/a","elicitationId":"e"}]}`, message)
	}
	var many []string
	for i := range maxInputs + 1 {
		many = append(many, fmt.Sprintf(`"q%d":{"method":"roots/list"}`, i))
	}
	for _, c := range []struct {
		what     string
		older    bool
		declared *mcp.ClientCapabilities
		answers  []string
	}{
		{what: "a question in the stream of the call", older: true, answers: []string{`events {"jsonrpc":"2.0","id":99,"method":"roots/list"} | wait | {"jsonrpc":"2.0","id":$ID,"result":` + ok + `}`}},
		{what: "a question that is malformed", older: true, answers: []string{`events {"jsonrpc":"2.0","id":99,"method":"elicitation/create","params":{"message":"m"}} | wait | {"jsonrpc":"2.0","id":$ID,"result":` + ok + `}`}},
		{what: "what the host can't answer", older: true, answers: []string{`events {"jsonrpc":"2.0","id":99,"method":"sampling/createMessage","params":{"messages":[]}} | wait | {"jsonrpc":"2.0","id":$ID,"result":` + ok + `}`}},
		{what: "a page to open first", older: true, answers: []string{page(""), "result " + ok}},
		{what: "a page to open first, again and again", older: true, answers: []string{page("")}},
		{what: "a page that the user declines", older: true, answers: []string{page("decline"), "result " + ok}},
		{what: "a result that asks for input", answers: []string{input(`{"a":{"method":"roots/list"}}`), "result " + ok}},
		{what: "a result that asks for input, of a call that declares none", declared: &mcp.ClientCapabilities{}, answers: []string{"result " + ok}},
		{what: "a call that declares forms only", declared: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}}}, answers: []string{"result " + ok}},
		{what: "input of no kind that there is", answers: []string{input(`{"a":{"method":"odd"}}`), "result " + ok}},
		{what: "too many inputs", answers: []string{input(`{` + strings.Join(many, ",") + `}`)}},
		{what: "what looks like inputs in a result", answers: []string{`result {"resultType":"complete","content":[],"structuredContent":{"inputRequests":5}}`}},
		{what: "a capability that the client has not declared", answers: []string{fmt.Sprintf(`error %d wants sampling | {"requiredCapabilities":{"sampling":{}}}`, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY)}},
		{what: "a capability that is not named", answers: []string{fmt.Sprintf(`error %d wants something`, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStory(t, "")
			s.declares = true
			if !c.older {
				s.says("server/discover", modern)
				s.says("tools/list", `result {"resultType":"complete","tools":[{"name":"a"}]}`)
			}
			s.says("POST", "status 202") // answers to the server
			srv := s.open(Config{Ask: ask.Options{Hooks: hooks, Timeout: time.Minute, MaxPerCall: 200, MaxAtOnce: 200, MaxBytes: 10_000}}, storyLimits())
			require.NoError(t, srv.Start(t.Context()))
			synctest.Wait()
			s.mu.Lock()
			s.lines = nil
			s.text.Reset()
			s.mu.Unlock()
			s.step("%s", c.what)
			s.says("tools/call", c.answers...)
			ctx := t.Context()
			if c.declared != nil {
				ctx = broker.Declare(ctx, *c.declared)
			}
			result, err := srv.Call(ctx, Tool{Name: "a"}, json.RawMessage("{}"))
			s.result(result, err)
			if lacks := new(CapabilityError); errors.As(err, &lacks) {
				s.say(aResult, "it requires %s", lacks.Required)
			}
			s.flush()
			all.WriteString(s.text.String() + "\n")
		})
	}
	golden.Compare(t, "asked.golden", all.String())
}
