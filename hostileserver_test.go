package mcphybrid

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// A mischief is what a hostile server does wrong from now on. The zero value is
// a server that behaves.
type mischief struct {
	At     string        // the method whose requests get wrong answers; "" for all
	Mute   bool          // it answers nothing
	Late   time.Duration // before the answer
	Held   bool          // the answer waits until it is to do something else
	Data   string        // written instead; $ID, $RESULT and $ANSWER stand for the right ones, $BIG for N times x
	N      int           // see Data and List
	Die    bool          // after that, before the end of the line, the process or the connection ends
	Status int           // over HTTP; the request is then not executed
	Type   string        // over HTTP, of the content
	List   string        // the listed tools: see (*hostile).list

	Push     string // sent at once without a request, Pushes times
	Pushes   int
	Stderr   int  // bytes written there at once
	Reset    int  // over HTTP: the server forgets its sessions at once and answers their requests with this status
	Deaf     bool // it does not read standard input
	Stubborn bool // the process ignores SIGTERM and the end of its input
	Family   bool // starts one grandchild in the process group and one in its own session
	Shelf    bool // it says that it has resources and prompts
}

// A journal counts how often each call was executed, by id.
type journal struct {
	mu  sync.Mutex
	ran map[string]int
}

func (j *journal) note(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ran[id]++
}

func (j *journal) count(id string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ran[id]
}

// A hostile is a server written by hand, so that it can send any bytes.
type hostile struct {
	name   string
	ran    func(id string) // called before a call is answered
	push   func(text string)
	hangUp func()

	mu       sync.Mutex
	does     mischief
	heard    *sync.Cond // on mu: signals that does has changed
	pushed   []string   // all messages ever pushed
	sessions map[string]bool
	forgot   int            // the status for others
	asked    map[string]int // requests by method
}

func newHostile(name string, ran func(string)) *hostile {
	h := &hostile{name: name, ran: ran, push: func(string) {}, hangUp: func() {}, sessions: make(map[string]bool), asked: make(map[string]int)}
	h.heard = sync.NewCond(&h.mu)
	return h
}

func (h *hostile) set(does mischief) {
	h.mu.Lock()
	h.does = does
	for range does.Pushes {
		h.pushed = append(h.pushed, does.Push)
	}
	h.heard.Broadcast()
	if does.Reset > 0 {
		h.forgot = does.Reset
		clear(h.sessions)
	}
	h.mu.Unlock()
	for range does.Pushes {
		h.push(does.Push)
	}
}

func (h *hostile) requests(method string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[method]
}

type hostileRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Cursor    string `json:"cursor"`
		Arguments struct {
			Text string `json:"text"`
		} `json:"arguments"`
	} `json:"params"`
}

// answer returns what to write for a request, and what is wrong with it; ""
// means nothing. It waits if the answer is late.
func (h *hostile) answer(ctx context.Context, r hostileRequest, modern bool) (string, mischief) {
	h.mu.Lock()
	told := h.does
	h.asked[r.Method]++
	h.mu.Unlock()
	does := told
	if does.At != "" && does.At != r.Method {
		does = mischief{List: does.List, N: does.N, Shelf: does.Shelf}
	}
	result, answer := "", ""
	can := `{"tools":{"listChanged":true}}`
	if does.Shelf {
		can = `{"tools":{"listChanged":true},"resources":{"listChanged":true},"prompts":{"listChanged":true}}`
	}
	switch r.Method {
	case "server/discover":
		if modern {
			result = `{"supportedVersions":["2026-07-28"],"capabilities":` + can + `}`
		}
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":` + can + `,"serverInfo":{"name":"hostile","version":"1"}}`
	case "tools/list":
		result = h.list(does, r.Params.Cursor)
	case "resources/list":
		result = `{"resources":[{"uri":"mem://letter","name":"letter"}]}`
	case "resources/templates/list":
		result = `{"resourceTemplates":[{"uriTemplate":"mem://pages/{page}","name":"page"}]}`
	case "prompts/list":
		result = `{"prompts":[{"name":"greet"}]}`
	case "resources/read":
		result = `{"contents":[{"uri":"mem://letter","text":"Dear Ada"}]}`
	case "prompts/get":
		result = `{"messages":[]}`
	case "tools/call":
		if does.Status == 0 {
			h.ran(r.Params.Arguments.Text)
		}
		result = callResult(echoed(h.name, r.Params.Name, r.Params.Arguments.Text))
	}
	answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
	if result == "" {
		answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
	}
	if does.Late > 0 {
		select {
		case <-time.After(does.Late):
		case <-ctx.Done():
		}
	}
	if does.Held {
		h.await(ctx, func() bool { return h.does != told })
	}
	switch {
	case does.Mute && does.Data == "":
		return "", does
	case does.Data != "":
		return strings.NewReplacer("$ID", string(r.ID), "$RESULT", result, "$ANSWER", answer, "$BIG", strings.Repeat("x", does.N)).Replace(does.Data), does
	case does.Die:
		return answer[:len(answer)/2], does
	}
	return answer, does
}

func callResult(text string) string {
	return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text)
}

// echoed returns the text of the right answer to a call.
func echoed(server, tool, text string) string { return server + " " + tool + " " + text }

// goodTools returns the tools of a server that behaves. The last one comes and
// goes.
const goodTools = `{"name":"echo","description":"Echoes a text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},` +
	`{"name":"keep","description":"Keeps a text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"idempotentHint":true}},` +
	`{"name":"look","description":"Looks a text up","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":true}}`

// list returns the result of tools/list.
func (h *hostile) list(does mischief, cursor string) string {
	n, _ := strconv.Atoi(cursor)
	switch {
	case does.List == "many":
		var b strings.Builder
		for i := range does.N - 3 {
			fmt.Fprintf(&b, `,{"name":"tool_%d","description":"Does chore %d"}`, i, i)
		}
		return `{"tools":[` + goodTools + b.String() + `]}`
	case does.List == "endless":
		return fmt.Sprintf(`{"tools":[{"name":"tool_%d"}],"nextCursor":"%d"}`, n, n+1)
	case does.List == "blank":
		return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n+1)
	case strings.HasPrefix(does.List, `{"tools"`):
		return strings.ReplaceAll(does.List, "$BIG", strings.Repeat("x", does.N))
	case does.List != "":
		list := goodTools + "," + strings.ReplaceAll(does.List, "$BIG", strings.Repeat("x", does.N))
		return `{"tools":[` + strings.TrimPrefix(list, goodTools+",-") + `]}` // "-" means without the good ones
	case cursor != "last": // two pages, as a normal server may have; a cursor of before begins anew
		return `{"tools":[` + goodTools + `],"nextCursor":"last"}`
	}
	return `{"tools":[{"name":"extra"}]}`
}

// serveHostile serves over standard input and output. The test at the address
// in CONTROL tells it what to do and gets its reports.
func serveHostile() {
	control, err := net.Dial("tcp", os.Getenv("CONTROL"))
	if err != nil {
		os.Exit(8)
	}
	fmt.Fprintln(control, "pid", os.Getpid())
	h := newHostile(os.Getenv("NAME"), func(id string) { fmt.Fprintln(control, "ran", id) })
	var writing sync.Mutex
	write := func(text, end string) {
		writing.Lock()
		defer writing.Unlock()
		_, _ = os.Stdout.WriteString(text + end)
	}
	h.push = func(text string) { write(text, "\n") }
	obeying := make(chan bool, 1)
	go func() {
		for d := json.NewDecoder(control); ; {
			var does mischief
			if d.Decode(&does) != nil {
				os.Exit(7) // the test is over
			}
			if does.Stubborn {
				signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			} else {
				signal.Reset(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			}
			if does.Family {
				startGrandchild(false)
				startGrandchild(true)
			}
			fmt.Fprint(os.Stderr, strings.Repeat("!", does.Stderr))
			h.set(does)
			fmt.Fprintln(control, "set")
			select {
			case obeying <- true:
			default:
			}
		}
	}()
	<-obeying
	in := bufio.NewReader(ears{h})
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var r hostileRequest
		if json.Unmarshal(line, &r) != nil || r.ID == nil || r.Method == "" {
			continue
		}
		go func() {
			text, does := h.answer(context.Background(), r, false)
			switch {
			case does.Die:
				write(text, "")
				os.Exit(4)
			case text != "":
				write(text, "\n")
			}
		}()
	}
	h.mu.Lock()
	for h.does.Stubborn {
		h.heard.Wait()
	}
}

// ears reads standard input, unless the server is deaf.
type ears struct{ h *hostile }

func (e ears) Read(p []byte) (int, error) {
	e.h.mu.Lock()
	for e.h.does.Deaf {
		e.h.heard.Wait()
	}
	e.h.mu.Unlock()
	return os.Stdin.Read(p)
}

// ServeHTTP speaks the current protocol at /modern and the one with sessions
// elsewhere.
func (h *hostile) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	modern := req.URL.Path == "/modern"
	var r hostileRequest
	body, _ := io.ReadAll(req.Body)
	session := req.Header.Get("Mcp-Session-Id")
	h.mu.Lock()
	does, known, forgot := h.does, h.sessions[session], cmp.Or(h.forgot, http.StatusNotFound)
	h.mu.Unlock()
	switch {
	case req.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case json.Unmarshal(body, &r) != nil || r.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case session != "" && !known:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(forgot)
		fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		return
	case modern && r.Method == "subscriptions/listen" && does.At != r.Method && (does.At != "" || !does.Mute && !does.Die && does.Data == ""):
		h.stream(w, req, r)
		return
	}
	text, does := h.answer(req.Context(), r, modern)
	if text == "" && !does.Die {
		<-req.Context().Done()
		return
	}
	w.Header().Set("Content-Type", cmp.Or(does.Type, "application/json"))
	if does.Status > 0 {
		w.Header().Set("Location", "http://127.0.0.2:1/")
	} else if r.Method == "initialize" {
		id := strconv.FormatInt(time.Now().UnixNano(), 36)
		h.mu.Lock()
		h.sessions[id] = true
		h.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	}
	w.WriteHeader(cmp.Or(does.Status, http.StatusOK))
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
	if does.Die {
		panic(http.ErrAbortHandler)
	}
	if does.Mute {
		<-req.Context().Done()
	}
}

// stream sends pushed messages until the client is gone.
func (h *hostile) stream(w http.ResponseWriter, req *http.Request, r hostileRequest) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%s}}}\n\n",
		mcp.MethodNotificationSubscriptionsAcknowledged, r.ID)
	w.(http.Flusher).Flush()
	h.mu.Lock()
	next := len(h.pushed) - h.does.Pushes // a client that connects now gets them too
	h.mu.Unlock()
	for ; ; next++ {
		push := ""
		h.await(req.Context(), func() bool {
			there := next < len(h.pushed)
			if there {
				push = h.pushed[next]
			}
			return there
		})
		if req.Context().Err() != nil {
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", push)
		w.(http.Flusher).Flush()
	}
}

// await waits until a condition on what mu guards holds, or ctx ends.
func (h *hostile) await(ctx context.Context, holds func() bool) {
	stop := context.AfterFunc(ctx, func() { h.mu.Lock(); defer h.mu.Unlock(); h.heard.Broadcast() })
	defer stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for !holds() && ctx.Err() == nil {
		h.heard.Wait()
	}
}

// A culprit is the test's handle of a hostile server, wherever the server runs.
type culprit struct {
	cfg ServerConfig
	set func(mischief)
	end func() // kills the process, or breaks all connections

	mu       sync.Mutex
	does     mischief
	children map[net.Conn]*hostileChild
	heard    *sync.Cond // on mu: signals that a child has obeyed or is gone
	server   *hostile   // if it serves over HTTP
}

type hostileChild struct{ pid, orders int } // with the orders that it has not obeyed yet

// newCulprit returns a server in a child (s), over HTTP with sessions (h), over
// HTTP with the current protocol (m) or in this process (p).
func newCulprit(t *testing.T, over byte, name string, j *journal) *culprit {
	c := &culprit{cfg: ServerConfig{Name: name}, children: make(map[net.Conn]*hostileChild), end: func() {}}
	c.heard = sync.NewCond(&c.mu)
	switch over {
	case 's':
		c.cfg = child(t, name, "hostile")
		c.cfg.Env["NAME"], c.cfg.Env["CONTROL"] = name, c.control(t, j)
		c.set = func(does mischief) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.does = does
			for conn, p := range c.children {
				p.orders++
				_ = json.NewEncoder(conn).Encode(does)
			}
			for slices.ContainsFunc(slices.Collect(maps.Values(c.children)), func(p *hostileChild) bool { return p.orders > 0 }) {
				c.heard.Wait()
			}
		}
		c.end = func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, child := range c.children {
				if p, err := os.FindProcess(child.pid); err == nil {
					_ = p.Kill()
				}
			}
		}
	case 'h', 'm':
		c.server = newHostile(name, j.note)
		web := httptest.NewUnstartedServer(c.server)
		web.Config.ErrorLog = log.New(io.Discard, "", 0)
		web.Start()
		t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
		c.cfg.URL = web.URL + map[byte]string{'h': "/mcp", 'm': "/modern"}[over]
		c.set, c.end = c.server.set, web.CloseClientConnections
	case 'p':
		c.inProcess(name, j)
	}
	return c
}

// control listens for the children of c, tells each what to do and keeps their
// reports.
func (c *culprit) control(t *testing.T, j *journal) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				lines := bufio.NewScanner(conn)
				lines.Buffer(nil, 4<<20)
				for lines.Scan() {
					what, value, _ := strings.Cut(lines.Text(), " ")
					c.mu.Lock()
					switch what {
					case "ran":
						j.note(value)
					case "set":
						c.children[conn].orders--
						c.heard.Broadcast()
					case "pid":
						pid, _ := strconv.Atoi(value)
						c.children[conn] = &hostileChild{pid, 1}
						_ = json.NewEncoder(conn).Encode(c.does)
					}
					c.mu.Unlock()
				}
				c.mu.Lock()
				delete(c.children, conn)
				c.heard.Broadcast()
				c.mu.Unlock()
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.mu.Lock()
		for conn := range c.children {
			conn.Close()
		}
		c.mu.Unlock()
		running.Wait()
	})
	return l.Addr().String()
}

// inProcess is an mcp-go server whose handlers misbehave as far as they can.
// They all heed their contexts, because a handler that doesn't would hold up
// its caller, as ARCHITECTURE.md says.
func (c *culprit) inProcess(name string, j *journal) {
	misbehave := func(ctx context.Context, method string) (text string) {
		c.mu.Lock()
		does := c.does
		c.mu.Unlock()
		if does.At != "" && does.At != method {
			return ""
		}
		if does.Die {
			panic("an invariant\nof mine")
		}
		if does.Late > 0 {
			select {
			case <-time.After(does.Late):
			case <-ctx.Done():
			}
		}
		if does.Mute || does.Held {
			<-ctx.Done()
		}
		return strings.ReplaceAll(does.Data, "$BIG", strings.Repeat("x", does.N))
	}
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest) { misbehave(ctx, "tools/list") })
	s := mcpserver.NewMCPServer(name, "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
	tools := func(does mischief) (list []mcpserver.ServerTool) {
		var in struct{ Tools []mcp.Tool }
		_ = json.Unmarshal([]byte((&hostile{}).list(does, "")), &in)
		if does.List == "" {
			in.Tools = append(in.Tools, mcp.NewTool("extra"))
		}
		for _, tool := range in.Tools {
			list = append(list, mcpserver.ServerTool{Tool: tool, Handler: func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				id := r.GetString("text", "")
				j.note(id)
				switch text := misbehave(ctx, "tools/call"); text {
				case "":
					return mcp.NewToolResultText(echoed(name, tool.Name, id)), ctx.Err()
				case "nil":
					return nil, nil
				default:
					return mcp.NewToolResultText(text), nil
				}
			}})
		}
		return list
	}
	s.SetTools(tools(mischief{})...)
	c.cfg.InProcess = s
	c.set = func(does mischief) {
		c.mu.Lock()
		changed := does.List != c.does.List
		c.does = does
		c.mu.Unlock()
		if changed {
			s.SetTools(tools(does)...)
		}
		for range does.Pushes {
			s.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
		}
	}
}

// running returns the number of processes of c.
func (c *culprit) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.children)
}
