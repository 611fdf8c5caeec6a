// Package debug serves HTML pages that show people what a Manager of package
// mcphybrid has and does: the servers and their states; each tool, how it stands
// and why; searches with the parts of each score; the sessions; and the tokens
// sent and saved over time. The pages need no script and load nothing else.
//
//	http.Handle("/debug/mcp", debug.Handler(mgr))
//
// The pages have no authentication. Whoever can reach them sees what any model
// is shown, so mount them behind the host's own access control. The secrets in
// the servers' configurations are hidden.
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

// A Source is what the pages show: a [mcphybrid.Manager] or, with what is the
// user's own, a [mcphybrid.User].
type Source interface {
	Watch()
	Snapshot(session int) (*mcphybrid.Snapshot, error)
}

// Handler returns pages that show mgr. They have one address and differ in its
// query only, so a host may mount the handler under any path. It answers GET and
// HEAD and changes nothing; with [mcphybrid.Options.Semantic], a search asks the
// embedder.
//
// Handler calls [mcphybrid.Manager.Watch]: from then on the Manager notes
// sessions and tokens. All handlers of one Manager show the same pages.
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

// ServeHTTP answers with a page. It reads the query only: the path is the
// host's.
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
		_, _ = w.Write(body.Bytes()) // the client may have gone
	}
}

// answer returns the page that r asks for, or one that says why there is none.
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
		text = own.Text(text).String() // it may repeat a secret of the query
	}
	return status, &page{Request: request{View: "error"}, At: time.Now(), Error: text}
}
