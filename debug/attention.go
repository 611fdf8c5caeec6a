package debug

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A matter is something that a person should look at.
type matter struct {
	What   string // what is the matter, in a few words
	Class  string // of the style: "bad" or "warn"
	Why    string // or ""
	Do     string // what an operator can do, or ""
	Said   string // all that is known of it, if Why is only its cause; or ""
	Since  time.Time
	Known  time.Time // since when the former definition of a changed tool is known, or zero
	Tried  int       // how often in a row it was tried in vain
	Next   time.Time // when something is tried again; zero if nothing is
	Server string    // name of the server whose tools the page shows, or ""
	Tool   string    // registered name of the tool to look at, or ""
	Button *deed     // what mends it, or nil
	Call   string    // the same as a call in the host's program, or "" for an operator
	rank   int
}

// These are the ranks of matters: the first are on top.
const (
	rankFile = iota
	rankDown
	rankUnauthorized
	rankDegraded
	rankHeld
	rankChanged
	rankProblem
)

// matters returns what needs attention, the worst first. Those of equal rank are in
// registration order. With a Guide they are for an operator.
func matters(snap snapshot.Manager, g *Guide, servers []snapshot.Server) (list []matter) {
	if g != nil && g.Unused != nil {
		if why := g.Unused(); why != "" {
			file, then := g.file()
			do := "Correct it." + then
			if strings.Contains(why, cause.UnsetVariables) {
				do = g.advice(snapshot.Server{Cause: snapshot.Cause{Kind: cause.Unset}})
			}
			list = append(list, matter{What: "A change of " + file + " is not used", Class: "bad", Why: why, Do: do, rank: rankFile})
		}
	}
	for _, s := range servers {
		if m, ok := serverMatter(s, g); ok {
			list = append(list, m)
		}
	}
	for _, s := range snap.Stores() {
		if !s.Away.IsZero() {
			list = append(list, matter{What: fmt.Sprintf("The store %s can't be reached", s.Name), Class: "bad", Why: s.Err.String(), Since: s.Away, rank: rankDown})
		}
	}
	for _, c := range snap.Changes() {
		list = append(list, changeMatter(snap, g, c))
	}
	for _, problem := range snap.Problems() {
		list = append(list, matter{What: problem.String(), Class: "warn", rank: rankProblem})
	}
	slices.SortStableFunc(list, func(a, b matter) int { return cmp.Compare(a.rank, b.rank) })
	return list
}

// owns reports whether what belongs to user is that of whom the pages are about: the
// system, or a user.
func owns(snap snapshot.Manager, user snapshot.Text) bool {
	return user.String() == snap.User().String()
}

func serverMatter(s snapshot.Server, g *Guide) (m matter, ok bool) {
	m = matter{Class: "bad", Since: s.Since, Next: s.Retry, Server: s.Name, Tried: s.Failures}
	button, call, is := deed{Do: "restart", Server: s.Name, Label: "Restart"}, "Restart", "is "+s.State
	switch mcphybrid.State(s.State) {
	case mcphybrid.StateDown:
		m.rank = rankDown
	case mcphybrid.StateConnecting:
		if s.Failures == 0 {
			return m, false
		}
		m.rank, is = rankDown, "is down, and is being tried again"
	case mcphybrid.StateUnauthorized:
		if m.rank = rankUnauthorized; s.Cause.Kind == cause.Token {
			is = "wants a valid token"
		} else {
			button.Do, button.Label, call, is = "login", "Log in", "Login", "is waiting for a login"
		}
	case mcphybrid.StateDegraded:
		m.rank, m.Class = rankDegraded, "warn"
	default:
		return m, false
	}
	owner := "mgr"
	m.What = fmt.Sprintf("Server %s %s", s.Name, is)
	if id := s.User.Line(maxName); id != "" {
		m.What, m.Server, owner = fmt.Sprintf("Server %s of user %s %s", s.Name, id, is), "", "user"
	} else if !s.Hidden {
		m.Button = &button
	} else {
		m.Server = ""
	}
	m.Why = cmp.Or(s.Cause.What, s.Err)
	if s.Err != "" && m.Why != s.Err {
		m.Said = s.Err
		if rest, ok := strings.CutPrefix(s.Err, m.Why+" ("); ok { // each is told once
			m.Said = strings.TrimSuffix(rest, ")")
		}
	}
	switch {
	case s.Hidden:
		m.Do = fmt.Sprintf("Its name is hidden here: %s.%s takes the one in its configuration.", owner, call)
	case g == nil || m.Button == nil: // no button mends it
		m.Call = fmt.Sprintf("%s.%s(ctx, %q)", owner, call, s.Name)
	case m.rank == rankDegraded:
		m.Do = "Its tools stay. If it does not recover by itself, restart it."
	default:
		m.Do = g.advice(s)
	}
	return m, true
}

func changeMatter(snap snapshot.Manager, g *Guide, c snapshot.Change) matter {
	owner, server := "mgr", c.Server
	if !owns(snap, c.User) {
		owner, server = "user", c.Server+" of user "+c.User.Line(maxName)
	}
	m := matter{Class: "warn", rank: rankChanged}
	if c.Hidden {
		m.Do = fmt.Sprintf("A name is hidden here: %s.Accept takes what stands in its place.", owner)
	} else if g == nil || owner == "user" {
		m.Call = fmt.Sprintf("%s.Accept(%q, %q, %q)", owner, c.Server, c.Tool, c.Is)
	}
	switch {
	case c.Added:
		m.What = fmt.Sprintf("New %s %s of server %s", c.Kind, c.Tool, server)
	case c.Was == "":
		m.What = fmt.Sprintf("Server %s has more %ss than are remembered: %s", server, c.Kind, c.Tool)
	default:
		m.What = fmt.Sprintf("Changed %s %s of server %s", c.Kind, c.Tool, server)
		m.Known = c.Since
	}
	if c.Quarantined {
		m.Class, m.rank = "bad", rankHeld
		m.Why += "It is held back until somebody accepts it."
	} else {
		m.Why += "It may be used all the same."
	}
	if c.Kind == "tool" {
		m.Tool = c.Name // its page has the button, below what there is to look at
	}
	switch {
	case m.Call != "" || m.Do != "":
	case m.Tool != "":
		m.Do = "Read its definition, and accept it there if it is fine."
	case g.Approve != "":
		m.Do = "Read it, and accept it if it is fine: " + g.Approve
	}
	return m
}
