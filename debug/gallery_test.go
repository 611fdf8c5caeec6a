package debug_test

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/scan"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
)

// manySessions are n sessions with the default one.
func manySessions(n int) (list []snapshot.Session) {
	for i := range n {
		list = append(list, snapshot.Session{Number: i, Turn: i})
	}
	return list
}

func manyTools(server string, n int, standing string) (list []snapshot.Tool) {
	for i := range n {
		name := fmt.Sprintf("tool_%03d", i)
		list = append(list, snapshot.Tool{Name: "mcp_" + server + "__" + name, Original: says(name), Server: says(server), Standing: standing, Reason: says("why " + fmt.Sprint(i)), Tokens: 1000 - i, Definition: meaning{schema: "{}"}})
	}
	return list
}

// Each page as people see it: of a Manager that has a little of everything.
func TestGallery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		ago := func(d time.Duration) time.Time { return now.Add(-d) }
		alice := says("alice")
		change := &snapshot.Change{Server: "s1", Tool: "wipe", Kind: "tool", Name: "mcp_s1__wipe", Quarantined: true, Since: ago(72 * time.Hour), Was: "was1", Is: "is1"}
		added := &snapshot.Change{Server: "s1", Tool: "fresh", Kind: "tool", Name: "mcp_s1__fresh", Added: true, Is: "is2"}
		forgotten := &snapshot.Change{User: alice, Server: "mail", Tool: "send", Kind: "tool", Name: "mcp_mail__send", Is: "is3"}
		s := &scene{
			problems: []string{"tool a of server s1 has no schema", "a secret is in a name"},
			changes: []snapshot.Change{*added, *change, *forgotten,
				{Server: "s1", Tool: "mem://a", Kind: "resource", Quarantined: true, Is: "is4", Was: "was4", Since: ago(time.Hour)}},
			servers: []snapshot.Server{
				{Name: "s1", State: "ready", Since: ago(90 * time.Second), Took: 1500 * time.Millisecond, Tools: 5, Resources: 2, Templates: 3, Prompts: 4, Instructions: says("Ask <me> first."),
					Figures: snapshot.Figures{Tools: 5, Inline: 1, Tokens: 12345, Usage: snapshot.Usage{Calls: 4, Errors: 1, Latency: 10 * time.Millisecond}}},
				{Name: "s2", State: "down", Since: ago(3 * time.Hour), Took: time.Second, Err: "it ended: (exit 3)", Failures: 1200, Retry: now.Add(30 * time.Second)},
				{Name: "s3", State: "unauthorized", Since: ago(time.Minute), Err: "401", Cause: snapshot.Cause{Kind: "login", What: "it wants a login"}, Failures: 1},
				{Name: "s4", State: "degraded", Since: ago(time.Second), Err: "it is slow (no answer)", Cause: snapshot.Cause{What: "it is slow"}, Failures: 2},
				{Name: "s5", State: "connecting", Since: ago(5 * time.Second)},
				{Name: "s6", State: "connecting", Since: ago(5 * time.Second), Failures: 3, Err: "refused"},
				{Name: "s7 [hidden]", Hidden: true, State: "unauthorized", Since: ago(2 * time.Hour), Cause: snapshot.Cause{Kind: "token", What: "its token was refused"}, Err: "401 it said so"},
				{Name: "own", Tools: 1, Figures: snapshot.Figures{Tools: 1, Inline: 1, Tokens: 7}},
				{Name: "only prompts", State: "cached", Since: now, Prompts: 1},
				{Name: "mail", User: alice, State: "ready", Since: ago(time.Hour), Took: 2 * time.Second, Tools: 3},
				{Name: "calendar", User: says("bob"), State: "down", Since: ago(48 * time.Hour), Took: 3 * time.Second, Failures: 1, Err: "no route", Cause: snapshot.Cause{Kind: "address", What: "nobody answers at its address"}, Retry: now.Add(time.Minute)},
				{Name: "notes", User: says("bob"), State: "down", Since: ago(time.Hour), Failures: 4},
			},
			tools: []snapshot.Tool{
				{Name: "mcp_s1__read", Original: says("read"), Server: says("s1"), Standing: "inline", Reason: says("there is room"), Tokens: 1234, Title: says("Read it"), Description: says("Reads  a\n  file"), Definition: meaning{schema: "{\n  \"type\": \"object\"\n}", marks: []scan.Mark{{Kind: "hidden", Place: "/description", Text: "U+200B"}}}},
				{Name: "mcp_s1__write", Original: says("write"), Server: says("s1"), Standing: "deferred", Reason: says("1 tool before it is inline"), Tokens: 99, Title: says("Write it"), Definition: meaning{schema: "{}"}},
				{Name: "mcp_s1__list", Original: says("list"), Server: says("s1"), Standing: "active", Reason: says("1 tool before it is inline"), Tokens: 50, Used: 3, Description: says(strings.Repeat("long ", 40)), Definition: meaning{schema: "{}"}},
				{Name: "mcp_s1__off", Original: says("off"), Server: says("s1"), Standing: "hidden", Reason: says(`rule "off" excludes it`), Tokens: 50, Definition: meaning{schema: "{}"}},
				{Name: "mcp_s7__[hidden]", Hidden: true, Original: says("secret"), Server: says("s7 secret"), Standing: "summarized", Reason: says("a rule"), Tokens: 50, Definition: meaning{schema: "{}"}},
				{Name: "own__b", Original: says("b"), Server: says("own"), Standing: "inline", Reason: says("it is pinned"), Tokens: 7, Definition: meaning{schema: "{}"}},
				{Name: "mcp_mail__read", Original: says("read"), Server: says("mail"), User: alice, Standing: "deferred", Reason: says("no room"), Tokens: 99, Definition: meaning{schema: "{}"}},
				{Name: "mcp_s1__fresh", Original: says("fresh"), Server: says("s1"), Standing: "quarantined", Description: says("Nobody read this"), Changed: added, Definition: meaning{schema: "{}"}},
				{Name: "mcp_s1__wipe", Original: says("wipe"), Server: says("s1"), Standing: "quarantined", Reason: says("held back"), Description: says("Wipes the secret disk"), Changed: change, Definition: meaning{schema: "{}"}},
				{Name: "mcp_mail__send", Original: says("send"), Server: says("mail"), User: alice, Standing: "inline", Reason: says("there is room"), Tokens: 10, Changed: forgotten, Definition: meaning{schema: "{}"}},
			},
			sessions: []snapshot.Session{
				{Turn: 2, Disclosure: "activation", Stats: snapshot.Stats{Servers: 3, Tools: 1009, Inline: 3, Deferred: 1002, Active: 4, Usage: snapshot.Usage{Calls: 2, Errors: 1, Latency: 6 * time.Second}, Searches: 5, EmptySearches: 2, Activations: 6,
					Tokens: snapshot.Tokens{All: 9000, Inline: 100, Meta: 200, Active: 300, Sections: 400, Searches: 500}}},
				{Number: 7, Began: ago(time.Minute), Label: says("ticket secret"), User: alice, Intent: says("clean up"), Turn: 1234, Disclosure: "provider", Why: "it is long", Losses: []snapshot.Loss{{At: ago(2 * time.Second), Tokens: 7000, Cause: snapshot.LossProvider, Miss: "tools_changed"}, {At: ago(time.Hour), Tokens: 50, Cause: snapshot.LossPause}},
					Stats: snapshot.Stats{Measured: snapshot.Measured{Requests: 3, Input: 8000, Cached: 1000, Written: 600, Output: 42, Losses: 2, Lost: 7050}, EstimatedSaved: -1500, Tokens: snapshot.Tokens{All: 10, Inline: 11}}},
				{Number: 5, Began: ago(time.Hour), Disclosure: mcphybrid.Automatic.String()},
			},
			events: []snapshot.Event{
				{Kind: string(mcphybrid.EventSearch), At: ago(time.Second), Number: 7, Query: "read a file", Tools: []string{"a", "b", "c", "d", "e", "f"}, More: 10, Took: 2 * time.Millisecond, Label: "ticket", User: "alice"},
				{Kind: string(mcphybrid.EventSearch), At: ago(time.Second), Query: "read a file", Took: time.Millisecond},
				{Kind: string(mcphybrid.EventSearch), At: ago(time.Second), Number: -1, Query: "with [hidden] in it", Took: time.Millisecond},
				{Kind: string(mcphybrid.EventCall), At: ago(2 * time.Second), Number: 6, Tools: []string{"mcp_s1__read"}, Server: "s1", Took: time.Second, ToolError: "no such file"},
				{Kind: string(mcphybrid.EventCall), At: ago(2 * time.Second), Number: 7, Tools: []string{"mcp_s2__[hidden]"}, Server: "s2", Err: "refused", ToolError: "both"},
				{Kind: string(mcphybrid.EventCall), At: ago(3 * time.Second), Number: 5, Tools: []string{"mcp_s2__x"}, Server: "s2", Err: "exit 3 (more)", Cause: snapshot.Cause{Kind: "exit", What: "exit 3"}},
				{Kind: string(mcphybrid.EventCall), At: ago(3 * time.Second), Number: 0, Tools: []string{}, Server: "s2", Err: "same", Cause: snapshot.Cause{What: "same"}},
				{Kind: string(mcphybrid.EventServer), At: ago(4 * time.Second), Number: -1, Server: "s2", State: "down", Err: "same", Cause: snapshot.Cause{What: "same"}, Times: 1500, First: ago(time.Hour)},
				{Kind: string(mcphybrid.EventServer), At: ago(4 * time.Second), Number: -1, Server: "s6", User: "bob", State: "ready", Took: time.Minute},
				{Kind: string(mcphybrid.EventCacheLost), At: ago(5 * time.Second), Number: 7, Loss: snapshot.Loss{Tokens: 7000, Cause: snapshot.LossProvider, Miss: "tools_changed"}},
				{Kind: string(mcphybrid.EventStore), At: ago(6 * time.Second), Number: -1, Store: "Cache", Err: "away"},
			},
			stores: []snapshot.Store{
				{Name: "Cache", Calls: 4, Latency: 10 * time.Millisecond, Longest: 5 * time.Millisecond, Conflicts: 1, Unavailable: 2, Failures: 3},
				{Name: "Usage", Calls: 1, Latency: time.Second, Longest: time.Second, Away: ago(time.Minute), Err: says("dial <secret>")},
			},
			samples: []snapshot.Sample{{At: ago(time.Hour), Sessions: 3, All: 900, Sent: 1000}, {At: ago(30 * time.Minute), Sessions: 3, All: 12101, Sent: 0}, {At: now, Sessions: 1, All: 8000, Sent: 2000}},
		}
		read, write := s.tools[0], s.tools[1]
		read.Standing, write.Standing = "", ""
		s.found = map[string]snapshot.Search{
			"read a file": {Took: 3 * time.Millisecond, Words: 12, Meaning: 1000, Err: says("the embedder is slow"), Hits: []snapshot.Hit{
				{Tool: write, Score: 2.5, Words: 1.5, Similarity: 0.25, Explained: search.Explanation{Parts: []search.ScorePart{{Field: "name", Word: "file", Query: "file", Term: "file", Score: 2}, {Field: "title", Word: "reads", Query: "read", Term: "open", Score: 0.5}}}},
				{Tool: s.tools[4], NeededBy: "mcp_s1__write"},
			}},
			"one": {Hits: []snapshot.Hit{{Tool: read, Score: 1}}},
		}
		var b strings.Builder
		h := debug.Handler(s)
		gallery(t, &b, h, "", "view=attention", "view=calls", "view=calls&failed=1", "view=calls&session=7&refresh=10", "view=calls&server=s2&failed=1&session=5", "view=calls&session=99&server=zz",
			"view=tools", "view=tools&sort=name", "view=tools&sort=server&refresh=2", "view=tools&sort=tokens&session=7", "view=tools&standing=deferred&q=+READ+", "view=tools&server=s7+[hidden]", "view=tools&q=nothing&sort=order",
			"view=tool&name=mcp_s1__read", "view=tool&name=mcp_s1__write&session=7&refresh=60", "view=tool&name=mcp_s1__wipe", "view=tool&name=mcp_s1__fresh", "view=tool&name=mcp_mail__send", "view=tool&name=mcp_s7__[hidden]", "view=tool&name=secret",
			"view=search", "view=search&q=read+a+file", "view=search&q=one&server=s1", "view=search&q=none&session=5",
			"view=sessions", "view=session", "view=session&session=7", "view=session&session=5&refresh=10", "view=session&session=6", "view=users", "view=users&session=7")
		asked := &strings.Builder{}
		for _, q := range s.asked {
			fmt.Fprintf(asked, "%+v\n", q)
		}
		golden.Compare(t, "gallery.golden", "The pages for a developer, of a Manager that has a little of everything.\n"+b.String()+"\n======== what was searched for\n"+asked.String())

		b.Reset()
		s.user = "alice"
		o := debug.Guide{Program: "the gateway", File: "mcp.json", Watched: true, Login: "gateway login", Approve: "gateway approve", Unused: func() string { return "line 3: no colon" }}.Operator(s)
		gallery(t, &b, o, "", "view=attention&refresh=2", "view=tool&name=mcp_s1__wipe", "view=tool&name=mcp_mail__send&session=7", "view=session", "view=session&session=7")
		press := func(query string) {
			w := post(o, query, nil)
			fmt.Fprintf(&b, "\n======== POST ?%s: %d %s%s\n", query, w.Code, w.Header().Get("Location"), strings.TrimSpace(w.Body.String()))
		}
		press("do=restart&of=s1")
		press("view=tools&do=login&of=s2&refresh=10&page=2&session=5&q=x&server=y&standing=inline&sort=name&name=z&failed=1&live=1")
		time.Sleep(time.Second)
		s.refuse = errors.New("mcphybrid: accept: no disk for secret")
		press("view=tool&name=mcp_s1__wipe&do=accept&of=s1&tool=wipe&hash=is1")
		for _, of := range []string{"restart of server %q: no", "login to server %q: no", "other %q"} {
			s.refuse = fmt.Errorf("mcphybrid: "+of, "s1")
			press("do=login&of=s1")
		}
		s.refuse = &exec.Error{Name: "uvx", Err: exec.ErrNotFound}
		press("do=restart&of=s3")
		press("do=login&of=s3")
		press("do=wash&of=s1")
		press("of=s1")
		gallery(t, &b, o, "view=users")
		time.Sleep(10*time.Minute - time.Second)
		gallery(t, &b, o, "view=users")
		time.Sleep(time.Second)
		gallery(t, &b, o, "view=users")
		time.Sleep(time.Nanosecond)
		gallery(t, &b, o, "view=users")
		golden.Compare(t, "gallery-operator.golden", "The pages for an operator, of the same Manager, then buttons, and what they did.\n"+b.String()+"\n======== what was done\n"+strings.Join(s.did, "\n")+"\n")
	})
}

// What is on a page if there is nothing, and if a list is as long as a page or longer.
func TestGalleryOfLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		empty := &scene{sessions: manySessions(1)}
		all := []string{"", "view=attention", "view=calls", "view=tools", "view=search", "view=search&q=x", "view=why", "view=why&name=x", "view=sessions", "view=session", "view=users"}
		gallery(t, &b, debug.Handler(empty), all...)
		gallery(t, &b, debug.Guide{}.Operator(empty), "")
		empty.closed = true
		gallery(t, &b, debug.Guide{File: "mcp.json"}.Operator(empty), "", "view=tool&name=x")
		golden.Compare(t, "gallery-empty.golden", "The pages of a Manager that has nothing.\n"+b.String())

		b.Reset()
		for _, n := range []int{100, 101, 201} {
			s := &scene{sessions: manySessions(n), tools: manyTools("s", n, "inline")}
			for i := range n {
				name := fmt.Sprintf("s%03d", i)
				s.servers = append(s.servers, snapshot.Server{Name: name, State: "ready", Since: time.Now()}, snapshot.Server{Name: name, Since: time.Now(), User: says("alice"), State: "ready"})
				s.problems = append(s.problems, "problem "+name)
				s.events = append(s.events, snapshot.Event{Kind: "call", Number: i, Server: name})
			}
			h := debug.Handler(s)
			for _, view := range []string{"overview", "attention", "calls", "tools", "sessions", "users"} {
				pages := map[int][]int{100: {1}, 101: {1, 2}, 201: {2, 4}}[n]
				if n == 201 && view != "tools" && view != "sessions" {
					continue
				}
				for _, page := range pages {
					body := ask(h, fmt.Sprintf("view=%s&page=%d", view, page)).Body.String()
					rows := rowOfList.FindAllString(body, -1)
					words := func(row string) string {
						return strings.ReplaceAll(strings.TrimSpace(picture(t, strings.Replace(row, `<li class="warn">`, "", 1))), "\n", " ")
					}
					pager := "no others"
					if nav := pagerOfList.FindString(body); nav != "" {
						pager = words(nav)
					}
					if assert.NotEmpty(t, rows, "%d %s", n, view) {
						fmt.Fprintf(&b, "%d %s, page %d: %d rows, %s to %s; %s\n", n, view, page, len(rows), words(rows[0]), words(rows[len(rows)-1]), pager)
					}
				}
			}
		}
		golden.Compare(t, "gallery-long.golden", "Which rows of long lists are on which page, and where its links lead.\n"+b.String())
	})
}

var (
	rowOfList   = regexp.MustCompile(`(?s)(<li class="warn"><p>|<th scope="row">)(.*?)</(p|th)>(\n?<td data-label="(session|server)">.*?</td>)?`)
	pagerOfList = regexp.MustCompile(`(?s)<nav class="pager".*?</nav>`)
)

// Why a model does not have a tool, or a search does not find it.
func TestGalleryOfReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		change := &snapshot.Change{Server: "s1", Tool: "wipe", Kind: "tool", Was: "w", Is: "i", Since: time.Now().Add(-time.Hour)}
		one := func(name, standing, reason string) snapshot.Tool {
			_, own, _ := strings.Cut(name, "__")
			return snapshot.Tool{Name: name, Original: says(own), Server: says("s1"), Standing: standing, Reason: says(reason), Used: 4}
		}
		s := &scene{
			sessions: []snapshot.Session{{}, {Number: 3, User: says("alice")}},
			servers: []snapshot.Server{
				{Name: "s1", State: "down", Err: "exit 3"}, {Name: "s2", State: "connecting"}, {Name: "s3", State: "connecting", Tools: 1}, {Name: "s4", State: "down", Tools: 1, Err: "no"},
				{Name: "mail", User: says("alice"), State: "down", Err: "no route"}, {Name: "calendar", User: says("bob"), State: "down", Err: "no way"},
			},
			tools: append(append(manyTools("many", 31, "deferred"), manyTools("some", 30, "summarized")...),
				one("mcp_s1__hidden", "hidden", "a rule says so"), one("mcp_s1__held", "quarantined", "it has changed"), one("mcp_s1__in", "inline", "there is room"), one("mcp_s1__on", "active", "it was found"),
				one("mcp_s1__off", "deferred", "no room"), snapshot.Tool{Name: "mcp_s9__[hidden]", Hidden: true, Original: says("cryptic"), Server: says("s9"), Standing: "deferred", Changed: change},
				one("mcp_s2__Same", "inline", "x"), one("mcp_s3__Same", "inline", "y"), snapshot.Tool{Name: "mcp_mail__send", Original: says("send"), Server: says("mail"), User: says("alice"), Standing: "deferred", Reason: says("no room")}),
			whyNot:   map[string]string{"mcp_zz__gone": "éts is not configured", "mcp_s1__absent": `its server "s1" has not listed it`, "mcp_s4__absent": `its server "s4" is down`},
			explains: map[string]search.Explanation{},
			found:    map[string]snapshot.Search{}, foundAll: map[string]snapshot.Search{},
		}
		off, other := s.tools[65], s.tools[0]
		part := []search.ScorePart{{Field: "name", Query: "off", Term: "off", Score: 1.5}}
		s.found["mcp zz  gone"] = snapshot.Search{Hits: []snapshot.Hit{{Tool: off}, {Tool: snapshot.Tool{Name: "unknown"}}, {Tool: s.tools[62]}}}
		for query, found := range map[string]struct {
			search, all snapshot.Search
			explained   search.Explanation
		}{
			"needed":  {search: snapshot.Search{Hits: []snapshot.Hit{{Tool: other}, {Tool: off, NeededBy: "mcp_many__tool_000"}}}},
			"first":   {search: snapshot.Search{Hits: []snapshot.Hit{{Tool: off}, {Tool: other}}}, explained: search.Explanation{Score: 1.5, Least: 0.5, Parts: part, Missing: []string{"a", "b"}}},
			"the":     {},
			"unlike":  {explained: search.Explanation{Missing: []string{"unlike"}}},
			"weak":    {explained: search.Explanation{Score: 0.4999, Least: 0.5, Parts: part}},
			"crowded": {search: snapshot.Search{Hits: []snapshot.Hit{{Tool: other, Score: 2}}}, all: snapshot.Search{Hits: []snapshot.Hit{{Tool: off}}}, explained: search.Explanation{Score: 0.5, Least: 0.5, Parts: part}},
			"late":    {search: snapshot.Search{Err: says("no embedder"), Hits: []snapshot.Hit{{Tool: s.tools[1], Score: 3}, {Tool: other, Score: 2}}}, explained: search.Explanation{Score: 1.5, Parts: part}},
			"nothing": {explained: search.Explanation{Score: 1.5, Parts: part}},
		} {
			s.found[query], s.foundAll[query], s.explains[query] = found.search, found.all, found.explained
		}
		var b strings.Builder
		h := debug.Handler(s)
		for _, query := range []string{"q=first", "name=mcp_s1__hidden&q=first", "name=+mcp_s1__held+", "name=in", "name=ON", "name=on&session=3&refresh=10", "name=off", "name=off&q=++", "name=cryptic", "name=mcp_s9__[hidden]", "name=send", "name=send&session=3",
			"name=Same", "name=same", "name=mcp_many", "name=mcp_some", "name=mcp_zz__gone", "name=mcp_s1__absent", "name=mcp_s4__absent", "name=x&session=3",
			"name=off&q=needed", "name=off&q=first", "name=off&q=the", "name=off&q=unlike", "name=off&q=weak", "name=off&q=crowded", "name=off&q=late", "name=off&q=nothing"} {
			gallery(t, &b, h, "view=why&"+query)
		}
		for _, n := range []int{29, 30, 31} { // more servers than are told of
			s.servers = nil
			for i := range n {
				s.servers = append(s.servers, snapshot.Server{Name: fmt.Sprintf("s%d", i), State: "connecting"})
			}
			fmt.Fprintf(&b, "\n======== %d servers are connecting: %d are told of\n", n, strings.Count(ask(h, "view=why&name=nowhere").Body.String(), "still connecting"))
		}
		golden.Compare(t, "gallery-why.golden", "Why a model does not have a tool, or a search does not find it.\n"+b.String())
	})
}

// What a person may click on where a page asks for something: of each server the tool that is most in question, then others.
func TestGalleryOfExamples(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{sessions: manySessions(1), events: []snapshot.Event{
			{Kind: string(mcphybrid.EventCall), Tools: []string{"mcp_a__1", "mcp_a__2"}}, {Kind: string(mcphybrid.EventCall)}, {Kind: string(mcphybrid.EventSearch), Query: "first", Tools: []string{"mcp_a__9"}}, {Kind: string(mcphybrid.EventSearch), Query: "second"}, {Kind: string(mcphybrid.EventCall), Tools: []string{"mcp_b__3"}},
		}}
		s.tools = append(s.tools, manyTools("one", 2, "inline")...)
		for _, standing := range []string{"active", "summarized", "deferred", "hidden", "quarantined"} {
			for _, t := range manyTools("one", 1, standing) {
				t.Name, t.Original = "mcp_one__"+standing, says("the-"+standing+"_one.Of/all: it")
				s.tools = append(s.tools, t)
			}
			s.tools = append(s.tools, manyTools("server-"+standing, 1, standing)...)
		}
		s.tools = append(s.tools, snapshot.Tool{Name: "mcp_x__[hidden]", Hidden: true, Original: says("x"), Server: says("x"), Standing: "inline"})
		var b strings.Builder
		gallery(t, &b, debug.Handler(s), "view=search", "view=why&q=kept&refresh=2")
		s.tools = s.tools[:3]
		gallery(t, &b, debug.Handler(s), "view=search", "view=why")
		golden.Compare(t, "gallery-examples.golden", "What a person may click on where a page asks for something.\n"+b.String())
	})
}

// Requests that are no requests say why.
func TestGalleryOfWrongRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{sessions: manySessions(2)}
		h := debug.Handler(s)
		long := "q=" + strings.Repeat("a", 8<<10-2)
		var b strings.Builder
		for _, query := range []string{"view=nothing", "view=" + strings.Repeat("é", 41), "standing=none", "sort=none", "do=none", "page=0", "page=1", "page=1000000000", "page=1000000001", "page=x", "session=-1", "session=1", "session=2", "session=1000000001", "refresh=-1", "refresh=3600", "refresh=3601",
			"failed=2", "live=2", "failed=-1", "%zz", "a;b=c", "view=nothing&page=0", "view=secret"} {
			w := ask(h, query)
			_, main, _ := strings.Cut(w.Body.String(), "<main>")
			main, _, _ = strings.Cut(main, "</main>")
			said := "a page"
			if w.Code != http.StatusOK {
				said = strings.ReplaceAll(strings.TrimSpace(picture(t, main)), "\n", " ")
			}
			fmt.Fprintf(&b, "?%s: %d %s\n", query, w.Code, said)
		}
		for _, query := range []string{long, long + "a"} {
			fmt.Fprintf(&b, "%d bytes: %d\n", len(query), ask(h, query).Code)
		}
		w := ask(h, "refresh=10")
		_, frame, _ := strings.Cut(w.Body.String(), "<body>")
		before, rest, _ := strings.Cut(frame, "<main>")
		_, behind, _ := strings.Cut(rest, "</main>")
		behind, _, _ = strings.Cut(behind, "<script>")
		b.WriteString("\n======== what stands around a page that reloads\n" + picture(t, before+behind))
		names := []string{"Cache-Control", "Content-Type", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options"}
		for _, name := range names {
			fmt.Fprintf(&b, "%s: %s\n", name, w.Header().Get(name))
		}
		assert.Equal(t, fmt.Sprint(w.Body.Len()), w.Header().Get("Content-Length"))
		golden.Compare(t, "gallery-wrong.golden", "What is said of requests that ask for no page; which numbers are allowed; and what all pages have.\n"+b.String())
	})
}
