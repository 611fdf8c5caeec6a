package mcphybrid

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// DebugHandler returns pages that show how the Manager is, for the people who
// run it: the servers and their states; each tool, how it stands and why;
// searches, with the parts that each score consists of; the sessions; and, over
// time, the tokens of tools in a request and those that are saved. They are
// plain HTML of one address and its query, which the host may mount under any
// path, and need no script and nothing from elsewhere:
//
//	http.Handle("/debug/mcp", mgr.DebugHandler())
//
// It only answers GET and HEAD and changes nothing; with [Options.Semantic], a
// search asks the embedder. Secrets of the servers' configurations are hidden.
// But there is no authentication: whoever can ask sees what any model is shown,
// so it must be mounted where only those can who may.
//
// The first call has the Manager note, until Close, the sessions that begin
// from then on, without keeping them, and the tokens, in a bounded number of
// samples. Without that call, none of it costs anything.
func (m *Manager) DebugHandler() http.Handler {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.debug.Load()
	if d == nil {
		d = &debugger{m: m, prune: minPrune}
		for _, s := range m.attached {
			if s != m.session {
				d.note(s)
			}
		}
		m.debug.Store(d)
		if m.life.Err() == nil {
			m.starting.Go(d.run)
		}
	}
	return d
}

// A debugger is what is kept for the pages.
type debugger struct {
	m *Manager

	mu       sync.Mutex
	last     int // number of the last session
	sessions []notedSession
	prune    int // how many there are when those that are gone are dropped next
	history  history
}

// A notedSession is one that may be gone. Sessions are numbered from 1 in the
// order in which they began; 0 is the Manager's own.
type notedSession struct {
	number  int
	began   time.Time
	session weak.Pointer[Session]
}

const minPrune = 64

// note has s among the sessions for as long as the host has it.
func (d *debugger) note(s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sessions) >= d.prune {
		kept := make([]notedSession, 0, len(d.sessions))
		for _, n := range d.sessions {
			if n.session.Value() != nil {
				kept = append(kept, n)
			}
		}
		d.sessions = kept
		d.prune = max(2*len(kept), minPrune) // so that each is looked at a few times at most
	}
	d.last++
	d.sessions = append(d.sessions, notedSession{d.last, time.Now(), weak.Make(s)})
}

// A liveSession is one that is there and open.
type liveSession struct {
	*Session
	number int
	began  time.Time // zero for the Manager's own
}

// newest returns the sessions that are open, the newest first.
func (d *debugger) newest() (list []liveSession) {
	d.mu.Lock()
	noted := d.sessions[:len(d.sessions):len(d.sessions)] // what is in it doesn't change
	d.mu.Unlock()
	for i := len(noted) - 1; i >= 0; i-- {
		s := noted[i].session.Value()
		if s == nil {
			continue
		}
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if !closed {
			list = append(list, liveSession{s, noted[i].number, noted[i].began})
		}
	}
	return list
}

// find returns the session of that number. It is an error if it is not there.
func (d *debugger) find(number int) (liveSession, error) {
	if number == 0 {
		return liveSession{Session: d.m.session}, nil
	}
	for _, s := range d.newest() {
		if s.number == number {
			return s, nil
		}
	}
	return liveSession{}, fmt.Errorf("there is no session %d: it has not begun yet, was closed, or is not used any more", number)
}

// double returns a session that is as s is now, to look at: what is asked of it
// changes nothing in s.
func (s *Session) double() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &Session{
		m: s.m, rights: s.rights, disclosure: s.disclosure, seen: s.seen, active: s.active, used: maps.Clone(s.used), turn: s.turn,
		shown: slices.Clip(s.shown), shownAs: s.shownAs, metas: s.metas, usage: s.usage, intent: s.intent, closed: s.closed, skills: s.skills,
	}
	d.pages.offered = s.pages.offered
	for kind := range d.meta {
		d.meta[kind] = metaTool{d, metaKind(kind)}
	}
	return d
}

var (
	//go:embed debug.html
	debugHTML string

	//go:embed debug.css
	debugCSS string

	debugTemplate = template.Must(template.New("").Funcs(template.FuncMap{
		"style": func() template.HTML { return template.HTML("<style>" + debugCSS + "</style>") },
		"count": count, "short": short, "ago": ago,
	}).Parse(debugHTML))

	debugHeaders = map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'sha256-" + base64Sum(debugCSS) + "'; img-src data:; " +
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

// ServeHTTP answers with a page. It heeds the query only: the path is the
// host's.
func (d *debugger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for name, value := range debugHeaders {
		header.Set(name, value)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "mcphybrid: the pages can only be read", http.StatusMethodNotAllowed)
		return
	}
	status, page := d.answer(r)
	var body bytes.Buffer
	if err := debugTemplate.ExecuteTemplate(&body, "page", page); err != nil {
		http.Error(w, "mcphybrid: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // who asked may have gone
	}
}

// answer returns the page that is asked for, or one that says why there is none.
func (d *debugger) answer(r *http.Request) (status int, page *debugPage) {
	e := d.eraser()
	a, err := parseAsked(r.URL.RawQuery)
	status = http.StatusBadRequest
	if err == nil {
		page, err = d.page(r.Context(), e, a)
		status = http.StatusNotFound
	}
	if err != nil {
		return status, &debugPage{Asked: asked{View: "error"}, At: time.Now(), Error: e.line(err.Error(), text.MaxError)}
	}
	return http.StatusOK, page
}
