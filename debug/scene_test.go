package debug_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/scan"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/require"
)

// A scene is a Manager of which a test says all that there is to see.
type scene struct {
	closed   bool
	user     string
	problems []string
	changes  []snapshot.Change
	servers  []snapshot.Server
	tools    []snapshot.Tool
	sessions []snapshot.Session // the default one first; of other numbers there are none
	events   []snapshot.Event
	stores   []snapshot.Store
	samples  []snapshot.Sample
	whyNot   map[string]string
	explains map[string]search.Explanation // by query
	found    map[string]snapshot.Search    // by query
	foundAll map[string]snapshot.Search    // the same without a limit for each server

	asked  []snapshot.Query
	did    []string
	refuse error // what buttons do fails with
}

func (s *scene) Watch() { s.did = append(s.did, "watch") }

func (s *scene) Snapshot(session int) (snapshot.Manager, error) {
	for _, one := range s.sessions {
		if one.Number == session {
			return seen{s, one}, nil
		}
	}
	return nil, fmt.Errorf("mcphybrid: there is no session %d, and no secret", session)
}

func (s *scene) do(words ...string) error {
	s.did = append(s.did, strings.Join(words, " "))
	return s.refuse
}

func (s *scene) Restart(_ context.Context, server string) error { return s.do("restart", server) }
func (s *scene) Login(_ context.Context, server string) error   { return s.do("login", server) }
func (s *scene) Accept(server, tool, hash string) error {
	return s.do("accept", server, tool, hash)
}

// A seen is a scene as one session sees it.
type seen struct {
	*scene
	session snapshot.Session
}

func (s seen) Closed() bool                   { return s.closed }
func (s seen) User() snapshot.Text            { return says(s.user) }
func (s seen) Text(text string) snapshot.Text { return says(text) }
func (s seen) Changes() []snapshot.Change     { return s.changes }
func (s seen) Servers() []snapshot.Server     { return s.servers }
func (s seen) Tools() []snapshot.Tool         { return s.tools }
func (s seen) WhyNot(name string) snapshot.Text {
	return says(s.whyNot[name])
}
func (s seen) Session() snapshot.Session  { return s.session }
func (s seen) Events() []snapshot.Event   { return s.events }
func (s seen) Stores() []snapshot.Store   { return s.stores }
func (s seen) Samples() []snapshot.Sample { return s.samples }
func (s seen) Problems() (list []snapshot.Text) {
	for _, p := range s.problems {
		list = append(list, says(p))
	}
	return list
}

func (s seen) ActiveTools() (list []snapshot.Tool) {
	for _, t := range s.tools {
		if t.Standing == "active" {
			list = append(list, t)
		}
	}
	return list
}

func (s seen) Sessions(from, to int) ([]snapshot.Session, int) {
	return s.sessions[min(from, len(s.sessions)):min(to, len(s.sessions))], len(s.sessions)
}

func (s seen) Search(_ context.Context, q snapshot.Query) snapshot.Search {
	s.asked = append(s.asked, q)
	s.scene.asked = s.asked
	if q.ServerLimit < 0 {
		return s.foundAll[q.Text]
	}
	return s.found[q.Text]
}

func (s seen) Explain(query, _ string) search.Explanation { return s.explains[query] }

// A censor hides one word.
type censor struct{}

func (censor) Line(text string, limit int) string {
	runes := []rune(strings.Join(strings.Fields(strings.ReplaceAll(text, "secret", "[hidden]")), " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}

func (censor) Lines(text string, limit int) string {
	return strings.ReplaceAll(text[:min(limit, len(text))], "secret", "[hidden]")
}

func says(text string) snapshot.Text { return snapshot.NewText(text, censor{}) }

// A meaning is the definition of a tool.
type meaning struct {
	schema string
	marks  []scan.Mark
}

func (d meaning) Schema(limit int) string { return d.schema[:min(limit, len(d.schema))] }
func (d meaning) Marks() []scan.Mark      { return d.marks }

// picture shows a page in words: headings with #, links with where they lead, buttons with what they do, and what
// is marked as bad or as chosen.
func picture(t *testing.T, body string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(body))
	d.Strict, d.AutoClose, d.Entity = false, append(xml.HTMLAutoClose, "input", "wbr"), xml.HTMLEntity
	var b strings.Builder
	var after []string // what follows when an element ends
	skip := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			attr := func(name string) string {
				for _, a := range token.Attr {
					if a.Name.Local == name {
						return a.Value
					}
				}
				return ""
			}
			end := ""
			switch name := token.Name.Local; name {
			case "style", "script", "head":
				skip++
			case "h1", "h2":
				b.WriteString("\n" + strings.Repeat("#", int(name[1]-'0')) + " ")
			case "p", "li", "tr", "pre", "nav", "dl", "ol", "ul", "svg", "figcaption", "footer", "noscript":
				b.WriteByte('\n')
			case "form":
				b.WriteString("\n" + attr("method") + " " + attr("action") + " ")
			case "div":
				if id := attr("id"); id != "" {
					b.WriteString("\n<" + id + ">\n")
				}
			case "a":
				b.WriteByte('[')
				end = "](" + attr("href") + ")" + with(" ", attr("rel"))
				if attr("aria-current") != "" {
					end += "*"
				}
			case "th", "td", "dd", "dt":
				end = " | "
				if span := attr("colspan"); span != "" {
					b.WriteString("(over " + span + ") ")
				}
			case "input":
				b.WriteString("[" + attr("name") + "=" + attr("value") + with("; ", attr("placeholder")) + "] ")
			case "details":
				b.WriteString("\n" + attr("data-of") + ": ")
			case "button":
				b.WriteString("button " + with("", attr("aria-label")) + ": ")
			case "path", "rect":
				b.WriteString(attr("class") + " " + attr("d") + attr("width"))
			}
			for _, class := range strings.Fields(attr("class")) {
				if slices.Contains([]string{"bad", "warn", "good", "failed", "bare"}, class) {
					b.WriteString("{" + class + "} ")
				}
			}
			after = append(after, end)
		case xml.EndElement:
			if token.Name.Local == "style" || token.Name.Local == "script" || token.Name.Local == "head" {
				skip--
			}
			if n := len(after) - 1; n >= 0 {
				b.WriteString(after[n])
				after = after[:n]
			}
		case xml.CharData:
			if skip == 0 {
				b.Write(token)
			}
		}
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if line = strings.Join(strings.Fields(line), " "); strings.Trim(line, "| ") != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func with(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// gallery appends pictures of what these queries show: without what is around it, which all pages have.
func gallery(t *testing.T, b *strings.Builder, h http.Handler, queries ...string) {
	t.Helper()
	for _, query := range queries {
		w := ask(h, query)
		fmt.Fprintf(b, "\n======== ?%s%s\n", query, with(" ", strings.TrimPrefix(fmt.Sprint(w.Code), "200")))
		body := w.Body.String()
		if _, main, ok := strings.Cut(body, "<main>"); ok {
			body, _, _ = strings.Cut(main, "</main>")
		}
		b.WriteString(picture(t, body))
	}
}
