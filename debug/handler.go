// Package debug serves HTML pages that show the state of a [mcphybrid.Manager]:
// its servers and their states, the standing of each tool and the reason for it,
// searches with the parts of each score, sessions, and the tokens sent and saved
// over time. The pages use no scripts and load no other resources.
//
//	http.Handle("/debug/mcp", debug.Handler(mgr))
//
// The pages have no authentication. Anyone who can reach them sees everything that
// any model is shown, so put them behind the host's own access control. They hide
// the secrets in the servers' configurations.
package debug

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/mcphybrid/mcphybrid"
)

// A Source is the data behind the pages: a [mcphybrid.Manager], or a
// [mcphybrid.User] with the user's own servers.
type Source interface {
	Watch()
	Snapshot(session int) (*mcphybrid.Snapshot, error)
}

// Handler returns a handler for pages that show mgr. All pages have one path and
// differ in the query only, so a host may mount the handler anywhere. It answers GET
// and HEAD and changes nothing. With [mcphybrid.Options.Semantic], a search calls
// the embedder.
//
// Handler calls [mcphybrid.Manager.Watch]: from then on, the Manager records sessions
// and tokens. All handlers of one Manager show the same pages.
func Handler(mgr Source) http.Handler {
	mgr.Watch()
	return handler{mgr}
}

type handler struct{ mgr Source }

var (
	//go:embed page.html
	pageHTML string

	//go:embed page.css
	pageCSS string

	pageTemplate = template.Must(template.New("").Funcs(template.FuncMap{
		"style": func() template.HTML { return template.HTML("<style>" + pageCSS + "</style>") },
		"count": count, "short": short, "ago": ago,
	}).Parse(pageHTML))

	headers = map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'sha256-" + base64Sum(pageCSS) + "'; img-src data:; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
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
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "mcphybrid: the pages are read-only", http.StatusMethodNotAllowed)
		return
	}
	status, p := h.answer(r)
	var body bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&body, "page", p); err != nil {
		http.Error(w, "mcphybrid: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // fails if the client has gone
	}
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
	text := err.Error()
	if own, err := h.mgr.Snapshot(0); err == nil {
		text = own.Text(text).String() // the error may repeat a secret from the query
	}
	return status, &page{Request: request{View: "error"}, At: time.Now(), Error: text}
}
