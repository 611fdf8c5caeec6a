package cache

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/store"
)

const (
	// pace is the least time between two saves. A crash loses what changed after the last one.
	pace = time.Second

	// precision is how far the stored time of an unchanged list may lag after a crash.
	// Close stores the exact time.
	precision = 24 * time.Hour
)

// A Cache keeps what servers listed last, and the names in a book. Its methods may be called
// concurrently; only Read, what it returns, and Close wait for a store.
type Cache interface {
	// Read returns what is in the store. What is there and is no catalog is an error.
	Read() (Found, error)

	// Put notes that the server has listed what read returns, which is called when it is
	// saved: within a second. What is not new was found in the store, and is saved only
	// if the store has it in the form of an earlier version.
	Put(name string, listed time.Time, isNew bool, read func() *Server)

	// Again notes that the server has listed the same again. If another process has stored
	// another list before that, ours is stored once more.
	Again(name string, listed time.Time)

	// Forget forgets the server, which then stays in the store for a month.
	Forget(name string)

	// Save has all stored that is not yet, within a second: names that are new too, and
	// what failed before.
	Save()

	// Close stores what is not yet, and waits for it. Nothing is stored afterwards.
	Close()
}

// Found is what there is in a store. Both functions return nil if there is nothing.
type Found struct {
	Names  []names.Claim
	Server func(name string) *Server // what the server has listed
	News   func(name string) *Server // that, if another process has stored other lists than ours since somebody looked
}

// Lists is Server. It returns nil if f is nil.
func (f *Found) Lists(name string) *Server {
	if f == nil {
		return nil
	}
	return f.Server(name)
}

// Open opens the Cache in a store for a book. saved is called after each save. Without a
// store, the Cache keeps nothing.
func Open(doc store.Document, book *names.Book, saved func(error)) Cache {
	if doc == nil {
		return none{}
	}
	return NewKeeper(doc, book, saved)
}

// none keeps nothing.
type none struct{}

func (none) Read() (Found, error) {
	nothing := func(string) *Server { return nil }
	return Found{Server: nothing, News: nothing}, nil
}

func (none) Put(string, time.Time, bool, func() *Server) {}
func (none) Again(string, time.Time)                     {}
func (none) Forget(string)                               {}
func (none) Save()                                       {}
func (none) Close()                                      {}

// A Keeper is a [Cache] in a store.
type Keeper struct {
	store store.Document
	parts store.Parts // of the store, or nil
	book  *names.Book
	saved func(error) // called after each save
	paced lazy.Paced

	claims int      // the number of the book's claims at the last save, which uses it
	left   []string // keys of bases of the last save, if that failed; it uses them

	mu      sync.Mutex
	servers map[string]*kept // by name
	baseKey string           // of the base that was read last
	base    *Catalog
}

// A kept server is one that has listed, or was found in the store. The Keeper's mu guards
// what changes.
type kept struct {
	name   string
	read   func() *Server // nil if it was only found in the store
	listed time.Time      // when it listed that
	stored time.Time      // listed, at the last save
	config string         // at the last save
	due    bool
	again  bool     // it has listed the same since the last look
	seen   string   // mark of what the store had when somebody looked
	other  bool     // that was another list than ours, of the same configuration
	chain  *chain   // in the store; nil if that is not known, or has no parts
	left   []string // keys of parts before and after the last save, if that failed
}

// NewKeeper returns a Keeper that calls saved after each save.
func NewKeeper(doc store.Document, book *names.Book, saved func(error)) *Keeper {
	k := &Keeper{store: doc, book: book, saved: saved, servers: make(map[string]*kept)}
	k.parts, _ = doc.(store.Parts)
	k.paced.Every, k.paced.Work = pace, k.save
	return k
}

// Read implements [Cache].
func (k *Keeper) Read() (Found, error) {
	c, err := k.read()
	if err != nil {
		return Found{}, fmt.Errorf("loading the catalog: %w", err)
	}
	return Found{c.Names, c.Server, c.News}, nil
}

// read returns the catalog in the store. What is there and is none is an error, and an empty
// one.
func (k *Keeper) read() (c *Catalog, err error) {
	for range 3 { // a base is removed when there is a new one
		var data []byte
		if data, err = k.store.Load(); err != nil {
			return nil, err
		}
		if c, err = k.parse(data); err != errGone {
			break
		}
	}
	if c != nil {
		c.keeper = k
	}
	return c, err
}

// loaded notes what of a server is in the store.
func (k *Keeper) loaded(found *kept) {
	if found.chain != nil || k.parts == nil { // else it goes to a part
		found.stored = found.listed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.servers[found.name] == nil {
		k.servers[found.name] = found
	}
}

// ours returns what the server has listed here, or nil, and what the store had of it.
func (k *Keeper) ours(name string) (*Server, *chain, string) {
	k.mu.Lock()
	s := k.servers[name]
	if s == nil || s.read == nil {
		k.mu.Unlock()
		return nil, nil, ""
	}
	chain, seen := s.chain, s.seen
	k.mu.Unlock()
	return k.now(s), chain, seen
}

// looked notes what of a server is in the store, and whether that is another list than ours.
func (k *Keeper) looked(name, mark string, now *Server, c *chain, other bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.servers[name]; s != nil {
		s.seen, s.stored, s.config, s.chain, s.other = mark, now.Listed, now.Config, c, other
	}
}

// look reads the store if a server has listed the same again, and has that stored if the store
// got another list before: a server that was rolled back is not found there as it was between.
// It reports whether it did.
func (k *Keeper) look() (looked bool, err error) {
	var again []*kept
	k.mu.Lock()
	for _, s := range k.servers {
		if s.again && s.read != nil {
			again = append(again, s)
			s.again = false
		}
	}
	k.mu.Unlock()
	if len(again) == 0 {
		return false, nil
	}
	c, err := k.read()
	if c != nil {
		err = nil // what is there and is no catalog is replaced when something has changed
	}
	for _, s := range again {
		var old *Server
		if c != nil {
			old = c.server(s.name)
		}
		k.mu.Lock()
		s.again = s.again || c == nil
		before := old != nil && (s.listed.After(old.Listed) || old.isAhead())
		news := before && s.seen != c.mark(s.name, old)
		k.mu.Unlock()
		if news {
			c.News(s.name)
		}
		k.mu.Lock()
		s.due = s.due || before && s.other
		k.mu.Unlock()
	}
	return true, err
}

// Put implements [Cache].
func (k *Keeper) Put(name string, listed time.Time, isNew bool, read func() *Server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.servers[name]
	if s == nil {
		s = &kept{name: name}
		k.servers[name] = s
	}
	s.read, s.listed = read, listed
	if s.due = s.due || isNew || s.stored.IsZero(); s.due {
		k.paced.Ask()
	}
}

// Again implements [Cache].
func (k *Keeper) Again(name string, listed time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.servers[name]; s != nil && s.read != nil {
		s.listed, s.again = listed, true
		s.due = s.due || listed.Sub(s.stored) >= precision
		k.paced.Ask()
	}
}

// Forget implements [Cache].
func (k *Keeper) Forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.servers, name)
}

// Save implements [Cache].
func (k *Keeper) Save() { k.paced.Ask() }

// Close implements [Cache].
func (k *Keeper) Close() {
	k.mu.Lock()
	for _, s := range k.servers {
		if s.read != nil && s.listed.After(s.stored) {
			s.due = true
			k.paced.Ask()
		}
	}
	k.mu.Unlock()
	k.paced.Close()
}

// now returns what a server has listed.
func (k *Keeper) now(s *kept) *Server {
	k.mu.Lock()
	read, listed := s.read, s.listed
	k.mu.Unlock()
	now := read()
	now.Listed = listed
	return now
}
