package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/store"
)

// A saving is a save under way.
type saving struct {
	*Keeper
	all     []*kept
	entries []*entry
	given   []names.Claim

	catalog *Catalog // that was stored last; nil if none was
	bases   []string // keys of all bases that the store had or got meanwhile
	gone    []string // keys of the last parts of servers that have left
	lost    string   // key of a base that is missing for good, or ""
}

// An entry is what the store should have of a server.
type entry struct {
	of   *kept
	due  bool
	now  *Server // nil if there is nothing to store
	over string  // key of the part that the store must still have as the server's last; else another process was faster
	was  *chain  // that led to that; nil if that is not known
	next *chain  // nil without parts
	put  bool    // the last part of next is new
	mark string  // of what was entered; "" if another process has put another part
}

// save stores what is due, and reports whether something was. What fails is due again.
func (k *Keeper) save() (done bool) {
	done, err := k.look()
	again := true
	for n := 0; again && n < 3; n++ { // if another process was faster
		s, due := k.take()
		if again = due || len(s.given) != k.claims; again {
			done, err = true, s.run()
			again = s.done(err)
		}
	}
	if again {
		k.paced.Ask()
	}
	if err != nil {
		err = fmt.Errorf("storing the catalog: %w", err)
	}
	k.saved(err)
	return done
}

// take returns what the store should have, and reports whether some of it is due.
func (k *Keeper) take() (s *saving, due bool) {
	s = &saving{Keeper: k, given: k.book.Claims()}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, of := range k.servers {
		s.all = append(s.all, of)
		if of.read == nil {
			continue
		}
		e := &entry{of: of, due: of.due, was: of.chain, next: of.chain}
		if k.parts != nil && of.chain != nil {
			e.now = &Server{Config: of.config, Listed: of.listed, Part: of.chain.head()}
		}
		s.entries = append(s.entries, e)
		due, of.due = due || of.due, false
	}
	return s, due
}

// run puts the parts, and then the catalog, which refers to them. If the store can't be read,
// nothing is written: it would overwrite the names. What is there and is no catalog is
// replaced, and so is a base that is lost.
func (s *saving) run() error {
	if s.parts != nil {
		c, err := s.read()
		if err == errGone {
			c, err = s.alone()
		}
		if c == nil {
			return err
		}
		s.remove(s.left, &chain{keys: []string{c.Base}})
		s.left = nil
		for _, e := range s.entries {
			if !e.due && !s.isThere(e, c) {
				e.due = true
			}
			if e.due {
				if err := s.putPart(e, c); err != nil {
					return err
				}
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeguard.MaxWait)
	defer cancel()
	err := storeguard.Update(ctx, s.store, s.merged)
	if err == nil && s.catalog == nil {
		err = errors.New("the store did not call change")
	}
	return err
}

// isThere reports whether the store has the parts of an entry, whose server may not be in c: who
// forgets a server that nobody has listed for long removes its parts.
func (s *saving) isThere(e *entry, c *Catalog) bool {
	if e.now == nil || c.Servers[e.of.name] != nil {
		return true
	}
	_, _, err := s.follow(e.now.Part, nil, nil)
	return err == nil
}

// alone reads what the document itself has, whose base is lost.
func (s *saving) alone() (*Catalog, error) {
	data, err := s.store.Load()
	if err != nil {
		return nil, err
	}
	c, err := parse(data)
	s.lost, c.Base = c.Base, ""
	return c, err
}

// putPart puts the part that leads from what the store has of a server, in c, to what it has
// listed.
func (s *saving) putPart(e *entry, c *Catalog) (err error) {
	old, now := c.server(e.of.name), s.now(e.of)
	var lost error
	if old != nil && old.Part != "" {
		if e.over = old.Part; e.was == nil || e.was.head() != e.over {
			_, e.was, lost = s.follow(e.over, nil, nil) // if that fails, all is new
		}
	} else {
		e.was = nil
	}
	if lost == nil {
		s.remove(e.of.left, e.was)
		e.of.left = nil
	}
	if old.isNewer(now) {
		e.now, e.due = nil, false // who refreshes takes that
		return nil
	}
	changes := e.was.diff(now.Lists)
	e.next = e.was
	switch same := e.was != nil && changes.is(e.was); {
	case same && old.Config == now.Config && now.Listed.Sub(old.Listed) < time.Minute && !old.isAhead(): // another process has the same
		s.looked(e.of.name, c.mark(e.of.name, old), old, e.was, false)
		e.now, e.due = nil, false
		return nil
	case !same:
		p := part{Of: e.over, Server: e.of.name, Listed: now.Listed, Lists: changes}
		data := text.RawJSON(p)
		if e.was == nil || !e.was.takes(data) {
			e.next = new(chain)
			p.Of, p.Lists = "", e.next.diff(now.Lists)
			data = text.RawJSON(p)
		}
		e.next, e.put = e.next.with(data, now.Lists), true
		err = s.parts.Put(e.next.head(), data)
	}
	e.now = &Server{Config: now.Config, Listed: now.Listed, Part: e.next.head()}
	return err
}

// maxAhead is how far another process's clock may be ahead of ours.
const maxAhead = 5 * time.Minute

// isAhead reports whether a clock was wrong when s was listed.
func (s *Server) isAhead() bool { return time.Until(s.Listed) > maxAhead }

// isNewer reports whether s, which may be nil, was listed after other, by the same
// configuration. What is ahead is not newer: it would stay for ever.
func (s *Server) isNewer(other *Server) bool {
	return s != nil && s.Config == other.Config && s.Listed.After(other.Listed) && !s.isAhead()
}

// merged returns the document after data. The store may ask for it several times.
func (s *saving) merged(data []byte) ([]byte, error) {
	c, err := s.parse(data)
	if err == errGone {
		if own, _ := parse(data); s.parts == nil || own.Base == s.lost {
			own.Base, c = "", own
		}
	}
	if c == nil {
		return nil, err
	}
	c.Names = names.Merge(c.Names, s.given)
	for _, e := range s.entries {
		s.enter(c, e)
	}
	s.catalog, s.gone = c, c.forget(s.all, time.Now())
	if s.parts == nil {
		c.Version = version
		return text.RawJSON(c), nil
	}
	s.bases = append(s.bases, c.Base)
	doc, base := c.format()
	if base == nil {
		return doc, nil
	}
	c.Base = store.KeyOf(base)
	s.bases = append(s.bases, c.Base)
	return doc, s.parts.Put(c.Base, base)
}

// enter has c say what the store will have of a server.
func (s *saving) enter(c *Catalog, e *entry) {
	e.mark = ""
	name := e.of.name
	known := c.Servers[name] != nil
	if s.parts == nil && (e.due || !known) {
		e.now = s.now(e.of)
	}
	if e.now == nil || known && !s.mayReplace(c.server(name), e) {
		return
	}
	c.Servers[name] = text.RawJSON(e.now)
	e.mark = c.mark(name, e.now)
}

// mayReplace reports whether e may replace what the store has of the server.
func (s *saving) mayReplace(old *Server, e *entry) bool {
	switch {
	case old == nil:
		return true
	case s.parts == nil:
		return e.due && !old.isNewer(e.now)
	case e.due:
		return old.Part == e.over
	}
	return old.Part == e.now.Part && e.now.Listed.Sub(old.Listed) > time.Minute
}

// done notes what was saved, adds the names there to the book, and removes the parts that
// nobody needs any more. Those of a save that failed stay until the next one has read the
// document: the store may have it all the same. It reports whether other processes were faster with something.
func (s *saving) done(err error) (again bool) {
	s.mu.Lock()
	for _, e := range s.entries {
		switch {
		case err == nil && e.mark != "":
			e.of.stored, e.of.config, e.of.seen, e.of.chain, e.of.other = e.now.Listed, e.now.Config, e.mark, e.next, false
		case e.due && (err != nil || s.parts != nil):
			if e.of.due = true; e.put && err != nil {
				e.of.left = slices.Clone(e.next.keys)
				if e.was != nil {
					e.of.left = append(e.of.left, e.was.keys...)
				}
			}
			again = err == nil
		}
	}
	s.mu.Unlock()
	if err != nil {
		s.left = s.bases
		return false
	}
	s.book.Restore(s.catalog.Names)
	s.claims = len(s.given)
	for _, e := range s.entries {
		switch {
		case e.put && e.mark == "":
			s.remove([]string{e.next.head()}, e.was)
		case e.put && e.was != nil:
			s.remove(e.was.keys, e.next)
		}
	}
	for _, key := range s.gone {
		if _, c, _ := s.follow(key, nil, nil); c != nil {
			s.remove(c.keys, nil)
		}
	}
	s.remove(s.bases, &chain{keys: []string{s.catalog.Base}})
	return again
}
