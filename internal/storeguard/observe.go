package storeguard

import "time"

// Observe has tell be called after each call of a store that this package has returned: how long it took,
// and its error. It must be called before the store is used. A nil or another store is not observed.
func Observe(of any, tell func(took time.Duration, err error)) {
	switch s := of.(type) {
	case *document:
		s.calls.tell = tell
	case *split:
		s.document.calls.tell = tell
	case parts:
		s.calls.tell = tell
	}
}
