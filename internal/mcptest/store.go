package mcptest

import "sync"

// A Store keeps a document in memory. Its methods may be called concurrently; its
// fields may be read and set only while no other method runs.
type Store struct {
	Data []byte
	Err  error // returned by Load and Save, which still do their work

	mu sync.Mutex
}

// Load returns the document, nil before the first Save.
func (s *Store) Load() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Data, s.Err
}

// Save replaces the document.
func (s *Store) Save(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Data = data
	return s.Err
}

// Fail sets Err.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Err = err
}
