// Package debug serves HTML pages that show the state of a [mcphybrid.Manager]: what
// needs attention, its servers and those of its users, the newest calls and searches
// with their errors, the standing of each tool and the reason for it, why a search does
// not find a tool, sessions, and the tokens sent and saved over time.
//
//	http.Handle("/debug/mcp", debug.Handler(mgr))
//
// A page that is open follows what happens, by server-sent events and one small script.
// Without the script it is what it was when it was loaded. The pages load no other
// resources.
//
// The pages have no authentication. Anyone who can reach them sees everything that
// any model is shown, what it searches for, and the errors of tools, so put them behind
// the host's own access control. They hide the secrets in the servers' configurations.
// They answer only under names of this machine and those that the host gives: see [Handler].
package debug

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hosts"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A Source is the data behind the pages: a [mcphybrid.Manager], or a
// [mcphybrid.User] with the user's own servers.
type Source interface {
	Watch()
	Snapshot(session int) (snapshot.Manager, error)
}

// Handler returns a handler for pages that show mgr. All pages have one path and
// differ in the query only, so a host may mount the handler anywhere. It answers GET
// and HEAD and changes nothing: where something needs attention, the page says which
// call of the host's program mends it. With [mcphybrid.Options.Semantic], a search calls the embedder.
//
// Up to 32 open pages are kept up to date. Each is a request that lasts until the page is
// closed or the Manager is: end such requests by their contexts before you shut a server
// down.
//
// Handler calls [mcphybrid.Manager.Watch]: from then on, the Manager records sessions,
// events and tokens. All handlers of one Manager show the same pages.
//
// A web page of somebody else can have a name of its own lead to this machine, and would
// then be shown what is here. So a request is answered only if its Host is localhost, an
// address of loopback, the address at which it came in, or one of names, in whatever letter
// case and with any port. Others get the status 421. Behind a proxy that keeps the Host, give
// the name by which people call it: debug.Handler(mgr, "ops.example.com"). [AnyHost] is for a
// host that checks names or users itself.
func Handler(mgr Source, names ...string) http.Handler { return newHandler(mgr, names) }

// AnyHost among the names of [Handler] and [Operator] permits all.
const AnyHost = "*"

// Operator is [Handler] with buttons: they restart a server, log in to one, and accept
// a changed tool. Whoever can reach these pages may press them. A button is a POST, which
// is refused if it comes from another site: see [http.CrossOriginProtection]. A login
// needs [mcphybrid.Options.OpenURL].
//
// A button that takes longer than three seconds goes on when its page is answered; the pages
// show what came of it for ten minutes. [Guide.Operator] tells people and the host more.
func Operator(mgr Operated, names ...string) http.Handler { return Guide{}.Operator(mgr, names...) }

func newHandler(mgr Source, names []string) handler {
	mgr.Watch()
	h := handler{mgr: mgr, streams: make(chan struct{}, maxStreams), anyHost: slices.Contains(names, AnyHost)}
	for _, name := range names {
		h.names = append(h.names, hosts.Bare(name))
	}
	return h
}

type handler struct {
	mgr      Source
	names    []string // by which it may be called, beside those of this machine
	anyHost  bool
	streams  chan struct{} // has one element for each page that is live
	operator *operator     // nil without buttons
}

var (
	//go:embed page.html
	pageHTML string

	//go:embed page.css
	pageCSS string

	//go:embed page.js
	pageJS string

	pageTemplate = template.Must(template.New("").Funcs(template.FuncMap{
		"style":  func() template.HTML { return template.HTML("<style>" + pageCSS + "</style>") },
		"script": func() template.HTML { return template.HTML("<script>" + pageJS + "</script>") },
		"count":  count, "short": short, "ago": ago, "name": name, "date": date, "clock": clock,
	}).Parse(pageHTML))

	headers = map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'sha256-" + base64Sum(pageCSS) + "'; script-src 'sha256-" + base64Sum(pageJS) +
			"'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin", // browsers give no Origin to a site that wants no referrer,
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	}
)

func base64Sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// ServeHTTP answers with a page. It reads only the query of the URL; the path
// belongs to the host.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for name, value := range headers {
		header.Set(name, value)
	}
	switch {
	case !h.anyHost && !hosts.Permits(r, h.names):
		refused := fmt.Sprintf("%q", text.Line(hosts.Named(r), text.MaxName))
		http.Error(w, "mcphybrid: there is no host "+refused+" here. If people reach these pages by this name, give it to the handler: debug.Handler(mgr, "+refused+"), or debug.Operator", http.StatusMisdirectedRequest)
		return
	case r.Method == http.MethodPost && h.operator != nil:
		h.post(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", h.allowed())
		http.Error(w, "mcphybrid: the pages can only be read", http.StatusMethodNotAllowed)
		return
	}
	status, p := h.answer(r)
	if p.Request.Live && status == http.StatusOK && r.Method == http.MethodGet {
		h.live(w, r)
		return
	}
	body, err := p.render()
	if err != nil {
		http.Error(w, "mcphybrid: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails if the client has gone
	}
}

func (h handler) allowed() string {
	if h.operator != nil {
		return "GET, HEAD, POST"
	}
	return "GET, HEAD"
}

// answer returns the page for r, or a page that says why there is none.
func (h handler) answer(r *http.Request) (status int, p *page) {
	req, err := parseRequest(r.URL.RawQuery)
	status = http.StatusBadRequest
	if err == nil {
		p, err = h.page(r.Context(), req)
		status = http.StatusNotFound
	}
	if err == nil {
		return http.StatusOK, p
	}
	p = &page{Request: request{View: "error"}, At: time.Now(), Error: strings.TrimPrefix(err.Error(), "mcphybrid: ")}
	if own, err := h.mgr.Snapshot(0); err == nil {
		p.Closed, p.Error = own.Closed(), own.Text(p.Error).String() // the error may repeat a secret from the query
	}
	return status, p
}
