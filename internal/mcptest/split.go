package mcptest

import (
	"maps"
	"sync"
)

// A Split is a [Store] with parts, and counts what is saved in them. Its methods may be
// called concurrently.
type Split struct {
	Store

	mu    sync.Mutex
	parts map[string][]byte
	err   error
	count Saves
	gets  int
}

// Saves are a number of saves, and of the bytes in them.
type Saves struct{ Times, Bytes int }

// Parts returns all parts by name.
func (s *Split) Parts() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.parts)
}

// Saved returns what was saved in parts since the last call.
func (s *Split) Saved() Saves {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.count
	s.count = Saves{}
	return count
}

// Gets returns how many parts were asked for since the last call.
func (s *Split) Gets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.gets
	s.gets = 0
	return n
}

// FailParts has all calls of parts return err.
func (s *Split) FailParts(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Get returns a part, nil if there is none.
func (s *Split) Get(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	return s.parts[name], s.err
}

// Put replaces a part, or removes it if data is nil.
func (s *Split) Put(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if data == nil {
		delete(s.parts, name)
		return nil
	}
	s.count.Times++
	s.count.Bytes += len(data)
	if s.parts == nil {
		s.parts = make(map[string][]byte)
	}
	s.parts[name] = data
	return nil
}
