package web

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
)

// A Sessions has the sessions of clients over HTTP. If there are too many, it ends
// one that answers nothing: first one whose client never asked anything, then the one
// that was silent longest. A session that ends cancels its requests. mcp-go would end silent
// ones too, with the calls that run in them.
type Sessions struct {
	max int
	End func(id string) // ends a session of mcp-go

	mu   sync.Mutex
	open map[string]*httpSession
}

// An httpSession is an entry of the table, by whose ID mcp-go knows the client.
type httpSession struct {
	id     string
	of     owner
	over   context.Context
	cancel context.CancelFunc

	// Guarded by the table's mutex.
	requests int  // that run, without streams on which the client listens
	used     bool // had a request after the first
	last     time.Time
}

func newSessions(max int) *Sessions {
	return &Sessions{max: max, open: make(map[string]*httpSession)}
}

// An owner is whose a session is. It is of no use to others.
type owner struct {
	holder *tokens.Holder // or nil, if no token was needed
	server string         // of the endpoint, or ""
}

func ownerOf(ctx context.Context) owner { return owner{tokens.HolderOf(ctx), ServerOf(ctx)} }

// begunKey is for the place, in the context of a request, of the session that it begins.
type begunKey struct{}

// ResolveSessionIdManager implements [server.SessionIdManagerResolver]. Without a request,
// mcp-go ends a session that the table does not have any more.
func (t *Sessions) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	m := sessionIDs{t, new(*httpSession), owner{}}
	if r != nil {
		m.of = ownerOf(r.Context())
		if begun, ok := r.Context().Value(begunKey{}).(**httpSession); ok {
			m.begun = begun
		}
	}
	return m
}

// sessionIDs is the table as a request sees it.
type sessionIDs struct {
	*Sessions
	begun **httpSession
	of    owner
}

// Generate implements [server.SessionIdManager]. The session has a request until leave.
func (t sessionIDs) Generate() string {
	s := &httpSession{id: rand.Text(), of: t.of, requests: 1, last: time.Now()}
	s.over, s.cancel = context.WithCancel(context.Background())
	t.mu.Lock()
	var surplus *httpSession
	if len(t.open) >= t.max {
		surplus = t.surplusLocked()
	}
	if surplus != nil {
		delete(t.open, surplus.id)
	}
	t.open[s.id] = s
	t.mu.Unlock()
	*t.begun = s
	if surplus != nil {
		surplus.cancel()
		t.End(surplus.id)
	}
	return s.id
}

// surplusLocked returns the session that may end first, or nil.
func (t *Sessions) surplusLocked() *httpSession {
	var found *httpSession
	for _, s := range t.open {
		switch {
		case s.requests > 0:
		case found == nil, found.used && !s.used, found.used == s.used && s.last.Before(found.last):
			found = s
		}
	}
	return found
}

var errNoSession = errors.New("there is no such session")

// Validate implements [server.SessionIdManager].
func (t sessionIDs) Validate(id string) (isTerminated bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.open[id]; s == nil || s.of != t.of {
		return false, errNoSession
	}
	return false, nil
}

// Terminate implements [server.SessionIdManager].
func (t sessionIDs) Terminate(id string) (isNotAllowed bool, err error) {
	t.mu.Lock()
	s := t.open[id]
	if s != nil && s.of != t.of {
		t.mu.Unlock()
		return true, nil
	}
	delete(t.open, id)
	t.mu.Unlock()
	if s != nil {
		s.cancel()
	}
	return false, nil
}

// enter notes a request of a session, and returns nil if there is no such session of who
// asks: a session is worth nothing without the token that it was begun with, nor at another
// endpoint. If the client listens, the session may still end for another one. Otherwise it has a request until
// leave.
func (t *Sessions) enter(id string, of owner, listens bool) *httpSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[id]
	if s == nil || s.of != of {
		return nil
	}
	if !listens {
		s.requests++
	}
	s.used, s.last = true, time.Now()
	return s
}

// EndOthers ends the sessions of those who may not stay.
func (t *Sessions) EndOthers(stays func(*tokens.Holder) bool) {
	t.endAll(func(s *httpSession) bool { return !stays(s.of.holder) })
}

// EndSilent ends sessions in which nothing was asked, answered or told for that long, until ctx
// ends. It looks twice in that time, and at most each second.
func (t *Sessions) EndSilent(ctx context.Context, long time.Duration) {
	looks := time.NewTicker(max(long/2, time.Second))
	defer looks.Stop()
	for {
		select {
		case <-looks.C:
			t.endAll(func(s *httpSession) bool { return s.requests == 0 && time.Since(s.last) >= long })
		case <-ctx.Done():
			return
		}
	}
}

func (t *Sessions) endAll(which func(*httpSession) bool) {
	t.mu.Lock()
	var ended []*httpSession
	for id, s := range t.open {
		if which(s) {
			delete(t.open, id)
			ended = append(ended, s)
		}
	}
	t.mu.Unlock()
	for _, s := range ended {
		s.cancel()
		t.End(s.id)
	}
}

// Count returns how many sessions there are.
func (t *Sessions) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

func (t *Sessions) leave(s *httpSession) {
	if s == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.requests--
	s.last = time.Now()
}

// withSession ends a request with its session, and refuses a session that is not there:
// mcp-go would begin one for whoever listens.
func (t *Sessions) withSession(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(server.HeaderKeySessionID)
		if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
			id = "" // it has no sessions
		} else if id == "" && (r.Method == http.MethodGet || r.Method == http.MethodDelete) {
			http.Error(out, "the header "+server.HeaderKeySessionID+" is missing", http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		if id != "" {
			listens := r.Method == http.MethodGet
			if s := t.enter(id, ownerOf(r.Context()), listens); s != nil {
				if listens {
					out = telling{out, t, s}
				} else {
					defer t.leave(s)
				}
				defer context.AfterFunc(s.over, cancel)()
			} else if listens {
				http.Error(out, errNoSession.Error(), http.StatusNotFound)
				return
			}
		}
		begun := new(*httpSession)
		defer func() { t.leave(*begun) }()
		next.ServeHTTP(out, r.WithContext(context.WithValue(ctx, begunKey{}, begun)))
	})
}

// telling is the answer to a client that listens. What it is told ends a silence.
type telling struct {
	http.ResponseWriter
	table   *Sessions
	session *httpSession
}

func (t telling) Write(p []byte) (int, error) {
	t.table.mu.Lock()
	t.session.last = time.Now()
	t.table.mu.Unlock()
	return t.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (t telling) Unwrap() http.ResponseWriter { return t.ResponseWriter }
