package login

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// lookTimeout bounds how long a server is asked whether it names a place to log in: somebody
// waits for why it is not ready.
const lookTimeout = 5 * time.Second

// errElsewhere ends a request that goes to another host than the server.
var errElsewhere = errors.New("nobody has asked for a login yet")

// NamesNone reports whether the server, which has refused a request without a token, names no
// place to log in: neither its refusal nor the metadata on its own host do. That it names none is kept
// until the next login; else the server is asked each time. NamesNone reports false if it can't know,
// and where the settings or an earlier login say how to log in.
func (a *Account) NamesNone(ctx context.Context) bool {
	a.mu.Lock()
	known, challenges := a.unnamed || a.record.ClientID != "", a.challenges
	unnamed := a.unnamed
	a.mu.Unlock()
	if known || !reflect.ValueOf(a.cfg.OAuth).IsZero() || leads(challenges) {
		return unnamed
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	none, err := hostcode.Detached(ctx, "the look for a login", func() (bool, error) { return a.namesNone(ctx) })
	if err != nil || !none {
		return false
	}
	a.setUnnamed(true)
	return true
}

func (a *Account) setUnnamed(unnamed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unnamed = unnamed
}

func (a *Account) namesNone(ctx context.Context) (bool, error) {
	base := plain(a.cfg.URL)
	places := []string{base}
	if host := origin(base); host != strings.TrimSuffix(base, "/") {
		places = append(places, host)
	}
	for _, place := range places {
		c := a.transport()
		c.home = base
		if _, err := a.askBy(ctx, c, place, nil); c.named() || err != nil {
			return false, err
		}
	}
	return true, ctx.Err()
}

// leads reports whether one of these WWW-Authenticate headers leads to metadata.
func leads(headers []string) bool {
	for _, h := range bounded(headers) {
		for _, c := range challengesIn(h) {
			if c.params["resource_metadata"] != "" {
				return true
			}
		}
	}
	return false
}
