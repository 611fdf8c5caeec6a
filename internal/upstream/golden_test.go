package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// short returns a text in quotes, without its middle if it is long.
func short(text string) string {
	if len(text) > 120 {
		return fmt.Sprintf("%q… %d bytes …%q", text[:40], len(text), text[len(text)-40:])
	}
	return fmt.Sprintf("%q", text)
}

// Which parts of a configuration are secrets, in which forms.
func TestGoldenSecrets(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What is hidden of a configuration. A form that differs in nothing but quotes or escapes stands there too.\n\n")
	for _, c := range []struct {
		what    string
		cfg     config.Server
		environ []string
	}{
		{what: "nothing"},
		{what: "too short without a name", cfg: config.Server{Env: map[string]string{"MODE": "1234567", "LEVEL": "12345678"}}},
		{what: "too short with a name", cfg: config.Server{Env: map[string]string{"KEY": "123", "TOKEN": "1234"}}},
		{what: "the host's", cfg: config.Server{Secrets: []string{"abcd", "abc", "Bearer wxyz"}}},
		{what: "of OAuth", cfg: config.Server{OAuth: &config.OAuth{ClientID: "client-id", ClientSecret: "client-secret", PrivateKey: "-----BEGIN\nabcdef\n-----END"}}},
		{what: "headers", cfg: config.Server{Headers: map[string]string{"Authorization": "Bearer abcd.efgh", "Accept": "text/plainest", "Cookie": `a=bcde; session="fghi"`, "X-Other": "api-key lmno"}}},
		{what: "basic credentials", cfg: config.Server{Headers: map[string]string{"Authorization": "Basic YW5uOnB3MTI="}}},
		{what: "credentials without a scheme", cfg: config.Server{Headers: map[string]string{"X-Auth": "one twos", "X-Auth-2": "Basic no-base64"}}},
		{what: "a URL", cfg: config.Server{URL: "https://ann:pass@h.example/v1/0123456789abcdef/0123456789abcde/abcdefghijklmnop?key=q%2F12&mode=1&long=12345678&alone#f"}},
		{what: "a URL with a token", cfg: config.Server{URL: "https://tokentok@h.example"}},
		{what: "a URL with a random user", cfg: config.Server{URL: "https://0123456789abcdefg:pw@h.example"}},
		{what: "a URL that is none", cfg: config.Server{URL: "https://%zz"}},
		{what: "arguments", cfg: config.Server{Command: "run", Args: []string{"--api-key", "abcd", "--token=efgh", "--secret", "--other", "PASSWORD=ijkl", "Authorization: Bearer mnop", "key://nothere", "-p", "qrstuvwx", "--pat"}}},
		{what: "arguments in the command", cfg: config.Server{Command: "run --api-key abcd"}},
		{what: "a command alone", cfg: config.Server{Command: "key=abcd"}},
		{what: "a helper", cfg: config.Server{HeadersHelper: "helper --token abcd"}},
		{what: "JSON and pairs", cfg: config.Server{Env: map[string]string{"CONFIG": `{"apiKey": "a\"bcd", "mode": "efgh"}`, "DSN": "host=db user=ann password=ijkl;sig='mnop' passphrase=q"}}},
		{what: "variables that a text has", cfg: config.Server{Command: "run", Args: []string{"--x", "valu1 value2 value3"}}, environ: []string{"MY_TOKEN=valu1", "MY_MODE=value2", "PWD=value3", "OLDPWD=value3", "A_KEY=value4", "MALFORMED"}},
		{what: "variables in the URL, the environment and the headers", cfg: config.Server{URL: "http://h/a-valu1", Env: map[string]string{"A": "a-valu2"}, Headers: map[string]string{"B": "a-valu3"}},
			environ: []string{"KEY1=valu1", "KEY2=valu2", "KEY3=valu3"}},
		{what: "lines and escapes", cfg: config.Server{Env: map[string]string{"KEY": "ab/cd é<&>\"\\\n  line two (x)  \nno"}}},
	} {
		s := newSecrets(&c.cfg, c.environ)
		fmt.Fprintf(&b, "%s\n", c.what)
		for _, v := range s.known() {
			fmt.Fprintf(&b, "  %q\n", v)
		}
	}
	b.WriteString("\nWhat is left of texts.\n")
	s := newSecrets(&config.Server{Secrets: []string{"secret-one", "one-two", "ab/cd+ef", "aaaaaaaa"}}, nil)
	for _, line := range []string{
		"", "nothing", "secret-one", "a secret-one b", "secret-onesecret-one", "secret-one-two", "xone-two", "secret-on", "secret-on…", "secret-o… x", "secr…", "sec…", "secret…-one", "SECRET-ONE",
		"ab%2Fcd%2Bef", "ab%2fcd%2bef", "ab%2fcd%2Bef", `ab\/cd+ef`, "ab/cd ef", "aaaaaaaaaaaa", "aaaaaaaa aaaaaaaa", "secret\u2060-one",
	} {
		fmt.Fprintf(&b, "  %q: %q, has one %v, after a cut %q\n", line, s.text(line), s.in(line), s.dropRest(line))
	}
	for _, name := range []string{"a", "b"} {
		var late []string
		for i := range maxLate + 1 {
			late = append(late, fmt.Sprintf("late-%s-%02d", name, i), fmt.Sprintf("late-%s-%02d", name, i))
		}
		s.hold(name, late)
	}
	b.WriteString("\nWhat is known of 17 late ones of two names, and of one of each of many names.\n ")
	for _, v := range s.known() {
		if strings.HasPrefix(v, "late-") {
			b.WriteString(" " + v)
		}
	}
	many := &secrets{late: make(map[string][]string)}
	for i := range maxHeaders - 1 {
		many.late[fmt.Sprintf("name%02d", i)] = []string{"1234567"}
	}
	for i := range 3 {
		many.hold(fmt.Sprintf("more%d", i), []string{fmt.Sprintf("of-more-%d", i)})
	}
	fmt.Fprintf(&b, "\n  %d names, %q is known, %q under the name of those beyond\n", len(many.late), many.known(), many.late["secret"])
	golden.Compare(t, "secrets.golden", b.String())
}

// What a child sends is read line by line, and what is too long is replaced.
func TestGoldenFrames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, values = 100, 12
		var b strings.Builder
		fmt.Fprintf(&b, "What is read of lines of a child, of at most %d bytes, %d values and 2 messages unasked in a second.\n\n", limit, values)
		padded := func(size int, first, last string) string {
			return first + strings.Repeat("x", size-len(first)-len(last)-1) + last + "\n"
		}
		for _, in := range []string{
			"", "{}\n", "{}", "\n\n", "{}\n{}\n", "{}\n{}\n{}\n", `{"jsonrpc":"2.0"}` + "\n",
			padded(limit, `{"id":1,"a":"`, `"}`), padded(limit+1, `{"id":1,"a":"`, `"}`), padded(limit+1, `{"jsonrpc":"2.0","id":12,"a":"`, `"}`), padded(limit+1, `{"jsonrpc" : "2.0" , "id" : 12 , "a":"`, `"}`),
			padded(limit+1, `{"a":"`, `","id":3}`), padded(limit+1, `{"a":"`, `","id":3,"jsonrpc":"2.0"}`), padded(limit+1, `{"a":"`, `","id":"3"}`), padded(limit+1, `{"a":"`, `"}`),
			padded(limit+1, `{"id":1,"method":"m","a":"`, `"}`), padded(500, `{"id":5,"a":"`, `"}`), padded(900, `{"a":"`, `","id":9}`), padded(limit*maxLine-1, `{"id":1,"a":"`, `"}`), padded(limit*maxLine, `{"id":1,"a":"`, `"}`),
			padded(300, `{"id":1,"a":"`, `"}`) + `{"id":2}` + "\n",
			`{"id":1,"a":[1,2,3,4,5,6,7,8]}` + "\n", `{"id":1,"a":[1,2,3,4,5,6,7,8,9]}` + "\n", `{"id":1,"a":[1,2,3,4,5,6,7,8,9,10]}` + "\n", `{"id":1,"a":[1,2,3,4,5,6,7,8,9,10,11,12]}` + "\n", `{"id":1,"result":[1,2,3,4,5,6,7,8,9,10,11,12,13,14]}` + "\n",
		} {
			var ended []string
			f := newFrameReader(inPieces(in), limit, values, &unsolicited{max: 2, maxBytes: limit}, func(err error) { ended = append(ended, fmt.Sprint(err)) })
			begins := 0
			f.begins = func() { begins++ }
			got, err := io.ReadAll(f)
			fmt.Fprintf(&b, "%s\n  is read as %s, begins %d, ends with %q, %v\n", short(in), short(string(got)), begins, ended, err)
			time.Sleep(time.Second)
		}
		golden.Compare(t, "frames.golden", b.String())
	})
}

// inPieces returns a reader that gives a few bytes at a time.
func inPieces(in string) io.Reader { return &pieces{in} }

type pieces struct{ rest string }

func (r *pieces) Read(p []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 7)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Bodies and streams of answers, and the older event stream, within their limits.
func TestGoldenBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, values = 100, 12
		var b strings.Builder
		fmt.Fprintf(&b, "What is read of bodies of at most %d bytes and %d values in a message, with 2 messages unasked in a second.\n\n", limit, values)
		event := func(data string) string { return "data: " + data + "\n\n" }
		many := `{"id":1,"a":[` + strings.Repeat("1,", values) + `1]}`
		for _, in := range []string{
			"", "{}", strings.Repeat("x", limit), strings.Repeat("x", limit+1), many[:len(many)-6], many, `{"id":1,"result":[` + strings.Repeat("1,", values) + `1]}`,
			event(`{"id":1}`), event(`{"id":1}`) + event(`{"id":2}`) + event(`{"id":3}`), event(`{"method":"m"}`) + event(`{"method":"m","id":1}`) + event(`{"id":1}`) + event("late"),
			event(`{"ID":1}`), event(`{"\u0069d":1}`), event(`{"result":{"id":1}}`) + event("more"), event("1") + event("2") + event("3"),
			": comment\n\n" + event("x"), "\n\n\n\n", "\r\n\r\n", "data: a\r\ndata: b\r\n\r\n", "data:{\"id\":1}\n\ndata:late\n\n", "data : x\n\n", "dat: x\n\n", "xdata: x\n\n", "\rdata: " + many + "\n\n",
			"data: " + strings.Repeat("x", limit-8) + "\n\n", "data: " + strings.Repeat("x", limit-7) + "\n\n", event(many), "event: " + many + "\n\n",
			strings.Repeat("data: 0123456789\n", 3) + "\n", strings.Repeat("a\n", 30) + "\n", strings.Repeat("a\n", 45) + "\n", strings.Repeat("\r\n", 3), "event: message\nid: 5\ndata: {\"id\":1}\n\n",
		} {
			for _, events := range []bool{false, true} {
				failed := new(outcome)
				body := &limitedBody{ReadCloser: io.NopCloser(inPieces(in)), failed: failed, max: limit, maxValues: values, unsolicited: &unsolicited{max: 2, maxBytes: limit}, events: events, answers: true}
				got, err := io.ReadAll(body)
				why := ""
				if refused := failed.refused.Load(); refused != nil {
					why += fmt.Sprintf(", refused: %v", *refused)
				}
				if noted := failed.err.Load(); noted != nil {
					why += fmt.Sprintf(", noted: %v", *noted)
				}
				fmt.Fprintf(&b, "%s, events %v\n  is read as %s, %v%s\n", short(in), events, short(string(got)), err, why)
				time.Sleep(time.Second)
			}
		}
		b.WriteString("\nThe older stream of events.\n")
		server, err := url.Parse("https://h.example/sse")
		require.NoError(t, err)
		long := func(size int, first, last string) string {
			return first + strings.Repeat("x", size-len(first)-len(last)) + last
		}
		for _, in := range []string{
			event("{}"), "event: endpoint\ndata: /messages?x=1\n\n", "event: endpoint\ndata: https://other.example/\n\n", "event: endpoint\ndata: %zz\n\n", "event:  other \ndata:a\ndata: b\n\n", "data:\n\n", "\n\n" + event("1") + event("2") + event("3"),
			event(`{"id":1,"method":"ping"}`) + event(`{"method":"m"}`), event(many), event(long(limit, `{"id":1,"a":"`, `"}`)), event(long(limit+1, `{"id":1,"a":"`, `"}`)), event(long(900, `{"a":"`, `","id":7}`)), event(long(900, `{"a":"`, `"}`)),
			event(long(limit*maxLine-8, `{"id":1,"a":"`, `"}`)), event(long(limit*maxLine+10, `{"id":1,"a":"`, `"}`)), "event: x\nid: 1\n: c\ndata: y\r\n\r\n", "data: cut",
		} {
			got, err := io.ReadAll(newEventBody(io.NopCloser(inPieces(in)), server, limit, values, &unsolicited{max: 2, maxBytes: limit}))
			fmt.Fprintf(&b, "%s\n  is read as %s, %v\n", short(in), short(string(got)), err)
			time.Sleep(time.Second)
		}
		golden.Compare(t, "bodies.golden", b.String())
	})
}

// How much a server may send that nobody asked for.
func TestGoldenUnasked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		b.WriteString("Messages unasked: at most 3 in a second, of 100 bytes each. a: a request, d: its answer came, a number: a message of so many bytes, s: a second, h: half of one.\n\n")
		for _, script := range []string{
			"1 1 1 1", "1 1 1 s 1 1 1 1", "1 1 1 h 1", "a 1 1 1 1 1", "a d 1 1 1 1 1", "a 1 d 1 1 1 1", "a s 1 1 1 1 1", "a s d 1 1 1 1", "a a 1 1 1 1 1 1",
			"100 1", "100 s 6 1", "100 s 7", "50 50 1", "a 100 100 1", "a 100 d 100 1", "a d 100 1", "a a 100 100 100 1", "a a 100 100 d d 100 1", "100 s s s s s s s s s s s s s s s s 100", "100 h 3 1", "100 h 4",
		} {
			u := &unsolicited{max: 3, maxBytes: 100}
			fmt.Fprintf(&b, "%s:", script)
			for step := range strings.FieldsSeq(script) {
				switch step {
				case "a":
					u.ask()
				case "d":
					u.answered()
				case "s":
					time.Sleep(time.Second)
				case "h":
					time.Sleep(time.Second / 2)
				default:
					var n int
					_, err := fmt.Sscan(step, &n)
					require.NoError(t, err)
					if err := u.count(n); err != nil {
						fmt.Fprintf(&b, " %s fails: %v;", step, err)
					}
				}
			}
			fmt.Fprintf(&b, " %d bytes are left\n", u.bytes)
		}
		golden.Compare(t, "unasked.golden", b.String())
	})
}

// What is read of pages of lists, within their limits.
func TestGoldenPages(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What is read of pages of lists: at most 3 elements and 4 pages, 60 bytes of an element and 150 of all.\n\n")
	tool := func(size int) string { return `{"name":"` + strings.Repeat("n", size-11) + `"}` }
	members := func(n int) string {
		var m strings.Builder
		for i := range n {
			fmt.Fprintf(&m, `"m%d":0,`, i)
		}
		return m.String()
	}
	for _, c := range []struct {
		kind  Kind
		pages []string
	}{
		{Tools, []string{`{"tools":[]}`}}, {Tools, []string{`{"tools":[1,"x",null,{}]}`}}, {Tools, []string{`{"tools":[1,"x",null]}`}}, {Tools, []string{`{"tools":[1]}`, `{"tools":[2]}`, `{"tools":[3]}`, `{"tools":[4]}`}},
		{Tools, []string{`{}`}}, {Tools, []string{`{"tools":{}}`}}, {Tools, []string{`{"tools":null}`}}, {Tools, []string{`[]`}}, {Tools, []string{`{"tools":[1],"tools":[2],"tools":[3,4]}`}},
		{Tools, []string{`{"tools":[]}`, `{"tools":[]}`, `{"tools":[]}`, `{"tools":[]}`}}, {Tools, []string{`{"tools":[]}`, `{"tools":[]}`, `{"tools":[]}`, `{"tools":[]}`, `{"tools":[]}`}},
		{Tools, []string{`{"tools":[` + tool(60) + `,` + tool(61) + `]}`}}, {Tools, []string{`{"tools":[` + tool(50) + `,` + tool(50) + `,` + tool(50) + `]}`}}, {Tools, []string{`{"tools":[` + tool(50) + `,` + tool(50) + `,` + tool(51) + `]}`}},
		{Tools, []string{`{"tools":[],"nextCursor":"` + strings.Repeat("c", maxCursor-2) + `"}`}}, {Tools, []string{`{"tools":[],"nextCursor":"` + strings.Repeat("c", maxCursor-1) + `"}`}},
		{Tools, []string{`{` + members(maxMembers-1) + `"tools":[]}`}}, {Tools, []string{`{` + members(maxMembers) + `"tools":[]}`}},
		{Tools, []string{`{"tools":[],"nextCursor":"c","_meta":{"a":1},"ttlMs":"soon","cacheScope":5}`}}, {Tools, []string{`{"tools":[],"ttlMs":5000,"cacheScope":"private"}`, `{"tools":[],"ttlMs":4000,"cacheScope":"public"}`, `{"tools":[],"ttlMs":6000}`}},
		{Tools, []string{`{"tools":[],"ttlMs":0}`}}, {Tools, []string{`{"tools":[],"ttlMs":1}`}}, {Tools, []string{`{"tools":[],"ttlMs":-1}`}}, {Tools, []string{`{"tools":[],"ttlMs":9007199254740993}`}},
		{Tools, []string{`{"tools":[{"name":"a","execution":{"taskSupport":"required"}}]}`}}, {Tools, []string{`{"tools":[{"name":"a","execution":{"taskSupport":"optional"}},{"taskSupport":"required"}]}`}},
		{Resources, []string{`{"resources":[{"uri":"a"}]}`}}, {Resources, []string{`{"tools":[1]}`}}, {Resources, []string{`{"resources":[1,2,3,4]}`}}, {Templates, []string{`{"resourceTemplates":[1]}`}},
		{Prompts, []string{`{"prompts":[1],"tools":[2,3]}`}}, {Skills, []string{`{"skills":[1]}`}}, {Skills, []string{`{"skills":[1,2,3,4]}`}}, {Skills, slices.Repeat([]string{`{"skills":[]}`}, 5)}, {Resources, slices.Repeat([]string{`{"resources":[]}`}, 5)},
	} {
		l := &listing{limits: config.Limits{MaxTools: 3, MaxPages: 4, MaxDefinition: 60, MaxListing: 150}, kind: c.kind, taskless: true}
		for _, page := range c.pages {
			r := l.ask(transport.JSONRPCRequest{Header: http.Header{}})
			got, err := l.takePage(json.RawMessage(page))
			fmt.Fprintf(&b, "%s %s: %s becomes %s, %v\n", r.Method, r.Header.Get(mcp.HeaderMethod), short(page), short(string(got)), err)
		}
		for _, e := range l.elements[c.kind] {
			fmt.Fprintf(&b, "  element %q, %v\n", e.Raw, e.Problem)
		}
		fmt.Fprintf(&b, "  fresh for %v, private %v\n", l.fresh, l.private)
	}
	b.WriteString("\nArguments that are headers too.\n")
	deep := func(levels int) string {
		return strings.Repeat(`{"properties":{"a":`, levels) + `{"x-mcp-header":"A"}` + strings.Repeat("}}", levels)
	}
	for _, raw := range []string{
		`{"name":"a"}`, `{"name":"a","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"P"}}}}`, `{"name":"a","inputSchema":{"type":"object","properties":{"p":{"type":"string","X-MCP-HEADER":"P"}}}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"p":{"type":"string","x\u002dmcp-header":"P"}}}}`, `{"name":"a","inputSchema":{"type":"object","properties":{"p":{"type":"object","x-mcp-header":"P"}}}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"bad name"}}}}`, `{"name":5,"inputSchema":{"x-mcp-header":1}}`, `{"name":"a","description":"x-mcp-header","inputSchema":{}}`,
		`{"name":"a","inputSchema":` + deep(maxMirrored/2-1) + `}`, `{"name":"a","inputSchema":` + deep(maxMirrored/2) + `}`, `{"name":"a","inputSchema":` + deep(maxMirrored) + `}`,
	} {
		l := &listing{mirrors: true}
		err := l.mirror(json.RawMessage(raw))
		twice := l.mirror(json.RawMessage(raw))
		none := new(listing).mirror(json.RawMessage(raw))
		fmt.Fprintf(&b, "%s: %v, again %v, where nothing is mirrored %v, %d mirrored\n", short(raw), err, twice, none, len(l.mirrored))
	}
	for _, raw := range []string{"", "{", "1", "{}", "[]", `{"a":{}}`, `{"a":1,"b":[{}]}`, `{"aa":{"bb":{"c":1}},"d":[["x",{}]]}`, `["a",{}]`, `{"a":"bbb","c":{}}`, `{"a":{}}}`} {
		deepest, paths := extent(json.RawMessage(raw))
		fmt.Fprintf(&b, "%q has %d levels, and paths of %d bytes\n", raw, deepest, paths)
	}
	golden.Compare(t, "pages.golden", b.String())
}

// What a server says of waiting, how long we wait, and when calls are refused.
func TestGoldenWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		b.WriteString("How long to wait, as a server says it.\n\n")
		for _, status := range []int{200, 429, 503} {
			for _, value := range []string{"", "0", "1", "-1", "1.5", "599", "600", "601", "99999999999999999999", "18446744073709551615", "soon", time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat), time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
				busy := busyFrom(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {value}}})
				if busy == nil {
					fmt.Fprintf(&b, "%d %q: nothing\n", status, value)
					continue
				}
				fmt.Fprintf(&b, "%d %q: %v, waits %v\n", status, value, busy, waitOf(fmt.Errorf("around: %w", busy)))
			}
		}
		fmt.Fprintf(&b, "another error waits %v\n\nHow long between attempts.\n", waitOf(errors.New("x")))
		for _, reconnect := range []time.Duration{0, time.Millisecond, time.Second, 40 * time.Second, time.Minute, 2 * time.Minute} {
			fmt.Fprintf(&b, "%v:", reconnect)
			for _, failures := range []int{-1, 0, 1, 2, 5, 6, 16, 17, 100} {
				fmt.Fprintf(&b, " %v", backoff(reconnect, failures))
			}
			b.WriteString("\n")
		}
		b.WriteString("\nHow soon lists are read again because another process has others.\n")
		for _, most := range []time.Duration{0, 3 * time.Second, time.Hour} {
			p := relistDelay{most: most}
			fmt.Fprintf(&b, "at most %v:", most)
			for range 6 {
				wait := p.wait()
				fmt.Fprintf(&b, " %v", max(wait, 0))
				time.Sleep(max(wait, 0))
				p.listed()
			}
			time.Sleep(max(4*p.next, quiet))
			fmt.Fprintf(&b, "; after %v %v", max(4*p.next, quiet), max(p.wait(), 0))
			p.listed()
			time.Sleep(max(4*p.next, quiet) + 1)
			fmt.Fprintf(&b, "; a moment later %v\n", p.wait() <= 0 && p.next == 0)
		}
		b.WriteString("\nWhen calls are refused: 3 in a row without an answer, 10 seconds at first. c: a call, n: no answer, y: an answer, e: another error, b: a server that asks for 5 s, l: for 20 s, w: nothing was sent, g: the caller gave up, o: a new connection, a number: so many seconds.\n")
		for _, script := range []string{
			"c n c n c n c 9 c 1 c n c", "c n c n c y c n c n c", "c n c n c e c n c n c", "c n c n c w c n c", "c n c n c g c n c", "c n c n c n 10 c y c", "c n c n c n 10 c n 19 c 1 c n 39 c 1 c n 79 c 1 c n 79 c 1 c n 79 c 1 c",
			"c b c 4 c 1 c y c", "c l c 19 c 1 c b 5 c", "c c l b 19 c 1 c", "c c b l 19 c 1 c", "c c b y c 5 c", "c c b n 5 c y", "c n c n c n o c", "c b o c 5 c", "c c c n n n c", "c n c n c n 10 c c y c", "c n c n c n 10 c g c n c",
			"c c c c n n y n c", "c n c c n n 10 c n 19 c",
		} {
			c := newCircuit(config.Limits{MaxTimeouts: 3, CallTimeout: 10 * time.Second})
			var under []passage
			fmt.Fprintf(&b, "%s:", script)
			for step := range strings.FieldsSeq(script) {
				ctx, err := t.Context(), error(nil)
				switch step {
				case "c":
					p, err := c.enter()
					if err != nil {
						fmt.Fprintf(&b, " [%v]", err)
					} else {
						under = append(under, p)
						if p.probe {
							b.WriteString(" tried")
						}
					}
					continue
				case "o":
					c.close()
					continue
				case "n":
					err = context.DeadlineExceeded
				case "y":
				case "e":
					err = errors.New("refused")
				case "b":
					err = &busyError{429, 5 * time.Second}
				case "l":
					err = &busyError{429, 20 * time.Second}
				case "w":
					err = barredError{context.DeadlineExceeded}
				case "g":
					gone, end := context.WithCancel(ctx)
					end()
					ctx, err = gone, context.DeadlineExceeded
				default:
					var n int
					_, scanned := fmt.Sscan(step, &n)
					require.NoError(t, scanned)
					time.Sleep(time.Duration(n) * time.Second)
					continue
				}
				if len(under) > 0 {
					time.Sleep(time.Millisecond)
					c.leave(ctx, under[0], err)
					under = under[1:]
				}
			}
			st := c.status(Status{State: Ready})
			fmt.Fprintf(&b, " is %s, %v, until %s; a server that is down stays %s\n", st.State, st.Err, st.Retry.UTC().Format(time.TimeOnly), c.status(Status{State: Down}).State)
		}
		golden.Compare(t, "waits.golden", b.String())
	})
}

// What mcp-go logs of a server has no secret, and is told to whom looks for errors.
func TestGoldenLogs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("What mcp-go's log of a server becomes.\n\n")
	s := newSecrets(&config.Server{Secrets: []string{"the-secret"}}, nil)
	for _, least := range []slog.Level{slog.LevelDebug - 4, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		fmt.Fprintf(&b, "from %v on\n", least)
		log := slog.New(secretHandler{slog.NewTextHandler(&b, &slog.HandlerOptions{Level: least, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}), s})
		log = log.With("with", "the-secret").WithGroup("g")
		for _, level := range []slog.Level{slog.LevelDebug - 4, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn - 1, slog.LevelWarn, slog.LevelError} {
			log.Log(t.Context(), level, "has the-secret", "text", "a the-secret", "number", 5, "error", &url.Error{Op: "Get", URL: "https://h.example/the-secret", Err: errors.New("x the-secret")},
				"any", []string{"the-secret"}, slog.Group("group", "inner", "the-secret"))
		}
	}
	golden.Compare(t, "logs.golden", b.String())
}

// What answers say of protocols, headers that a command prints, and how long a child that works is waited for.
func TestGoldenFirstAnswers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What becomes of answers to server/discover, for the version 2026-07-28, where the newer is preferred and where the older is.\n\n")
	params := func(raw string) transport.JSONRPCRequest {
		return transport.JSONRPCRequest{ID: mcp.NewRequestId(int64(3)), Params: json.RawMessage(raw)}
	}
	asked := params(`{"_meta":{"` + mcp.MetaKeyProtocolVersion + `":"2026-07-28"}}`)
	for _, result := range []string{`{}`, `5`, `{"supportedVersions":[]}`, `{"supportedVersions":["2026-07-28"]}`, `{"supportedVersions":["2025-11-25"]}`, `{"supportedVersions":["2025-11-25","2026-07-28"]}`, `{"supportedVersions":["2026-07-28","odd"]}`, `{"supportedVersions":"2026-07-28"}`} {
		for _, earlier := range []bool{false, true} {
			got, err := json.Marshal(discovered(asked, transport.NewJSONRPCResultResponse(asked.ID, json.RawMessage(result)), earlier))
			require.NoError(t, err)
			fmt.Fprintf(&b, "%s, older %v: %s\n", result, earlier, got)
		}
	}
	for _, raw := range []string{`{}`, `5`, `{"_meta":{"` + mcp.MetaKeyProtocolVersion + `":5}}`} {
		got, err := json.Marshal(discovered(params(raw), transport.NewJSONRPCResultResponse(asked.ID, json.RawMessage(`{"supportedVersions":["2026-07-28"]}`)), false))
		require.NoError(t, err)
		fmt.Fprintf(&b, "asked by %s: %s\n", raw, got)
	}
	b.WriteString("\nWhich errors refuse the version, which only say that there is no such method.\n")
	for _, err := range []error{nil, errors.New("x"), &badRequestError{errors.New("x")}, mcp.UnsupportedProtocolVersionError{Version: "a", Supported: []string{"a"}}, mcp.UnsupportedProtocolVersionError{Version: "a", Supported: []string{"b"}}} {
		fmt.Fprintf(&b, "%v: refuses %v, what it has %v, lost %v\n", err, refusesVersion(err), refusesWhatItHas(err), isLost(err))
	}
	const lacks = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`
	for _, c := range []struct {
		status     int
		kind, body string
	}{
		{404, "application/json", lacks}, {404, "application/json; charset=utf-8", lacks}, {400, "application/json", lacks}, {404, "text/plain", lacks}, {404, "", lacks}, {404, "application/json", strings.Replace(lacks, "-32601", "-32602", 1)},
		{404, "application/json", strings.Replace(lacks, "2.0", "1.0", 1)}, {404, "application/json", "{"}, {404, "application/json", lacks + strings.Repeat(" ", maxRefusal-len(lacks))}, {404, "application/json", lacks + strings.Repeat(" ", maxRefusal-len(lacks)+1)},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(inPieces(c.body))}
		no := lacksMethod(resp)
		rest, err := io.ReadAll(resp.Body)
		fmt.Fprintf(&b, "%d %s %s: %v, and %d bytes are read, %v\n", c.status, c.kind, short(c.body), no, len(rest), err)
	}
	b.WriteString("\nWhat a child said first, and what is told of it.\n")
	hide := newSecrets(&config.Server{Secrets: []string{"the-secret"}}, nil)
	for _, said := range []string{"", "\n", "Listening on 3000\n", "with the-secret", strings.Repeat("x", maxFirstWords), strings.Repeat("x", maxFirstWords+1), strings.Repeat("x", maxFirstWords-4) + "the-secret"} {
		f := &firstWords{Reader: inPieces(said), spoke: make(chan struct{})}
		silent := f.isSilent()
		_, err := io.Copy(io.Discard, f)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s: silent %v, then %v, %s\n", short(said), silent, f.isSilent(), short(fmt.Sprint(f.explain(errors.New("no answer"), hide))))
		fmt.Fprintf(&b, "  with last words %q", fmt.Sprint(f.explain(errors.New("the process ended"+lastWords+"x"), hide)))
		f.areOver()
		fmt.Fprintf(&b, ", after a message %q\n", fmt.Sprint(f.explain(errors.New("no answer"), hide)))
	}
	b.WriteString("\nHow often a child is looked at, and whether it is at work.\n")
	for _, timeout := range []time.Duration{0, 8 * time.Second, 8*time.Second + 8, 20 * time.Second, 20*time.Second - 8, time.Hour} {
		fmt.Fprintf(&b, "%v: each %v\n", timeout, lookEach(timeout))
	}
	for _, w := range []work{{}, {runnable: true}, {computed: 20 * time.Millisecond}, {computed: 19 * time.Millisecond}, {written: 1}} {
		fmt.Fprintf(&b, "%+v is more than nothing in a second: %v, than itself %v\n", w, w.isMore(work{}, time.Second), w.isMore(w, time.Second))
	}
	golden.Compare(t, "firstanswers.golden", b.String())
}

// While a child works, the clock of its start stands still, for five minutes at most.
func TestGoldenHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		b.WriteString("A start of at most 60.5 seconds, where a child is looked at each 7 seconds: + it works then, - it does not, s it has spoken, x it has ended. After the last look all is as before.\n\n")
		for _, script := range []string{"-", "+", "+-", "-+", "++++++++++-", "+-+-+-+-", "s", "+s", "x", "++x", "-------------------------"} {
			begun := time.Now()
			ctx, release := hostcode.WithClock(t.Context(), 60500*time.Millisecond)
			spoke, exited := make(chan struct{}), make(chan struct{})
			fmt.Fprintf(&b, "%s:", script)
			looks := 0
			holdWhile(ctx, 7*time.Second, func() bool {
				at := min(looks, len(script)-1)
				if looks++; looks <= len(script) {
					switch script[at] {
					case 's':
						close(spoke)
					case 'x':
						close(exited)
					}
				}
				return script[at] == '+'
			}, spoke, exited, func(at bool) { fmt.Fprintf(&b, " %v %v", time.Since(begun), at) })
			fmt.Fprintf(&b, "; over after %v, %d looks, %v", time.Since(begun), looks, ctx.Err())
			<-ctx.Done()
			fmt.Fprintf(&b, ", and ends after %v\n", time.Since(begun))
			release()
		}
		golden.Compare(t, "holds.golden", b.String())
	})
}
