package storeguard

import "github.com/mcphybrid/mcphybrid/store"

// Parts returns p with its panics turned into errors that begin with what. A call that takes
// longer than [MaxCall] fails. It returns nil for nil.
func Parts(p store.Parts, what string) store.Parts {
	if p == nil {
		return nil
	}
	return parts{&calls{what: what, wait: MaxCall}, p}
}

type parts struct {
	calls *calls
	of    store.Parts
}

func (p parts) Get(key string) ([]byte, error) {
	return p.calls.get(func() ([]byte, error) { return p.of.Get(key) })
}

func (p parts) Put(key string, part []byte) error {
	return p.calls.do(func(*call) error { return p.of.Put(key, part) })
}
