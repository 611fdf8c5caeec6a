package debug

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/history"
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
	// maxDone is how many outcomes of buttons are shown.
	maxDone = 5

	// deedTimeout is how long a restart or a login may take. A login waits for a
	// person.
	deedTimeout = 5 * time.Minute
)

// An outcome is what came of a deed.
type outcome struct {
	At   time.Time
	What string
	Err  error // or nil
}

// An operator does what buttons say.
type operator struct {
	mgr     Operated
	done    *history.Newest[outcome]
	foreign *http.CrossOriginProtection
}

func newOperator(mgr Operated) *operator {
	return &operator{mgr, history.NewNewest[outcome](maxDone), http.NewCrossOriginProtection()}
}

// do does a deed and notes what came of it.
func (o *operator) do(ctx context.Context, d deed) {
	ctx, cancel := context.WithTimeout(ctx, deedTimeout)
	defer cancel()
	var err error
	what := fmt.Sprintf("%s of server %s", d.Do, d.Server)
	switch d.Do {
	case "restart":
		err = o.mgr.Restart(ctx, d.Server)
	case "login":
		err = o.mgr.Login(ctx, d.Server)
	case "accept":
		what = fmt.Sprintf("accept of %s of server %s", d.Tool, d.Server)
		err = o.mgr.Accept(d.Server, d.Tool, d.Hash)
	}
	o.done.Add(outcome{time.Now(), what, err})
}

// An outcomeRow is an outcome as the page shows it.
type outcomeRow struct {
	At   time.Time
	What string
	Err  string
}

func (o *operator) outcomes(snap snapshot.Manager) (rows []outcomeRow) {
	if o == nil {
		return nil
	}
	for _, done := range o.done.All() {
		row := outcomeRow{At: done.At, What: snap.Text(done.What).String()}
		if done.Err != nil {
			row.Err = snap.Text(strings.TrimPrefix(done.Err.Error(), "mcphybrid: ")).String()
		}
		rows = append(rows, row)
	}
	return rows
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
	h.operator.do(r.Context(), req.Deed)
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
