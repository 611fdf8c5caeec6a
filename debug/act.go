package debug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// An Operated is a [Source] whose servers can be mended. A [mcphybrid.Manager] and a
// [mcphybrid.User] are.
type Operated interface {
	Source
	Restart(ctx context.Context, server string) error
	Login(ctx context.Context, server string) error
	Accept(server, tool, hash string) error
}

// A deed is what a button does. Its fields are parameters of the query.
type deed struct {
	Do     string // "restart", "login" or "accept"
	Server string
	Tool   string // its own name
	Hash   string
	Label  string // of the button
}

var deeds = []string{"restart", "login", "accept"}

const (
	// maxDone is how many outcomes of buttons are shown, and shownFor for how long.
	maxDone  = 5
	shownFor = 10 * time.Minute

	// maxRunning is how many deeds may be under way at once.
	maxRunning = 32

	// deedTimeout is how long a restart or a login may take. A login waits for a
	// person. The answer to a button waits for deedPatience at most.
	deedTimeout  = 5 * time.Minute
	deedPatience = 3 * time.Second
)

// An outcome is what came of a deed.
type outcome struct {
	deed
	began, ended time.Time // ended is zero while it is under way
	err          error     // or nil
}

// An operator does what buttons say.
type operator struct {
	mgr     Operated
	guide   Guide
	foreign *http.CrossOriginProtection

	mu      sync.Mutex
	running []*outcome // the oldest first
	done    []*outcome // the last, the oldest first
}

func newOperator(mgr Operated, g Guide) *operator {
	return &operator{mgr: mgr, guide: g, foreign: http.NewCrossOriginProtection()}
}

var errBusy = fmt.Errorf("%d buttons were pressed that are still at work, which is the limit", maxRunning)

// begin does a deed, unless it is under way, and closes ended when that is over. The reader who
// pressed the button may leave meanwhile.
func (o *operator) begin(ctx context.Context, d deed) (ended <-chan struct{}, err error) {
	over := make(chan struct{})
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.running {
		if r.deed == d {
			close(over)
			return over, nil
		}
	}
	if len(o.running) >= maxRunning {
		return nil, errBusy
	}
	r := &outcome{deed: d, began: time.Now()}
	o.running = append(o.running, r)
	asked := context.WithoutCancel(ctx)
	go func() {
		defer close(over)
		ctx, cancel := context.WithTimeout(asked, deedTimeout)
		defer cancel()
		err := o.do(ctx, d)
		if o.guide.Done != nil {
			o.guide.Done(asked, Action{d.Do, d.Server, d.Tool}, err)
		}
		o.finish(r, err)
	}()
	return over, nil
}

func (o *operator) do(ctx context.Context, d deed) error {
	switch d.Do {
	case "restart":
		return o.mgr.Restart(ctx, d.Server)
	case "login":
		return o.mgr.Login(ctx, d.Server)
	}
	return o.mgr.Accept(d.Server, d.Tool, d.Hash)
}

func (o *operator) finish(r *outcome, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var rest []*outcome
	for _, other := range o.running {
		if other != r {
			rest = append(rest, other)
		}
	}
	o.running = rest
	ended := *r
	ended.ended, ended.err = time.Now(), err
	o.done = append(o.done, &ended)
	o.done = o.done[max(len(o.done)-maxDone, 0):]
}

// An outcomeRow is an outcome as the page shows it.
type outcomeRow struct {
	At    time.Time
	What  string
	Ended bool
	Err   string
	Page  string // where to log in, or ""
	Host  string // of Page
}

// outcomes returns what buttons do and have done, the newest first.
func (o *operator) outcomes(snap snapshot.Manager) (rows []outcomeRow) {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for i := len(o.running) - 1; i >= 0; i-- {
		r := o.running[i]
		row := outcomeRow{At: r.began, What: r.words(snap)}
		if page, ok := o.guide.Logins.page(snap.User().String(), r.Server); ok && r.Do == "login" {
			row.Page = page.URL
			if u, err := url.Parse(page.URL); err == nil {
				row.Host = snap.Text(u.Host).Line(maxName)
			}
		}
		rows = append(rows, row)
	}
	for i := len(o.done) - 1; i >= 0; i-- {
		r := o.done[i]
		if now.Sub(r.ended) > shownFor {
			break
		}
		row := outcomeRow{At: r.ended, What: r.words(snap), Ended: true}
		if r.err != nil {
			row.Err = snap.Text(r.failure()).String()
		}
		rows = append(rows, row)
	}
	return rows
}

// words says what was to be done.
func (d deed) words(snap snapshot.Manager) string {
	server := snap.Text(d.Server).Line(maxName)
	switch d.Do {
	case "restart":
		return "Restart of server " + server
	case "login":
		return "Login to server " + server
	}
	return "Accepting " + snap.Text(d.Tool).Line(maxName) + " of server " + server
}

// failure says why it failed, which What need not be told again.
func (o *outcome) failure() string {
	if errors.As(o.err, new(*mcphybrid.AuthorizationError)) {
		return "the server refuses the login or the token that it gets"
	}
	if o.Do == "login" && errors.Is(o.err, context.DeadlineExceeded) {
		return fmt.Sprintf("nobody logged in within %d minutes: press the button again", int(deedTimeout.Minutes()))
	}
	if c := cause.Of(o.err); c.Kind != "" && o.Do != "login" { // in a login, it is no server's start
		return c.What
	}
	text := strings.TrimPrefix(o.err.Error(), "mcphybrid: ")
	for _, before := range []string{fmt.Sprintf("restart of server %q: ", o.Server), fmt.Sprintf("login to server %q: ", o.Server), "accept: "} {
		text = strings.TrimPrefix(text, before)
	}
	return text
}

// post answers a POST: it does what the button says and leads back to the page. A button
// has no other fields than the query of its address.
func (h handler) post(w http.ResponseWriter, r *http.Request) {
	if err := h.operator.foreign.Check(r); err != nil {
		http.Error(w, "mcphybrid: this request comes from another site", http.StatusForbidden)
		return
	}
	req, err := parseRequest(r.URL.RawQuery)
	if err == nil && req.Deed.Do == "" {
		err = fmt.Errorf("the query does not say what to do")
	}
	if err != nil {
		http.Error(w, "mcphybrid: "+err.Error(), http.StatusBadRequest)
		return
	}
	ended, err := h.operator.begin(r.Context(), req.Deed)
	if err != nil {
		http.Error(w, "mcphybrid: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	late := time.NewTimer(deedPatience)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	case <-r.Context().Done():
	}
	req.Deed = deed{}
	w.Header().Set("Location", req.link())
	w.WriteHeader(http.StatusSeeOther)
}

// values returns d as parameters of a query.
func (d deed) values(to url.Values) {
	for name, value := range map[string]string{"do": d.Do, "of": d.Server, "tool": d.Tool, "hash": d.Hash} {
		if value != "" {
			to.Set(name, value)
		}
	}
}

// ToDeed returns the address of a button that leads back to this page.
func (r request) ToDeed(d deed) string {
	r.Deed = d
	return r.link()
}
