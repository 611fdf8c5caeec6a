package modeltest

import (
	"net/http"
	"slices"
	"sync"
)

// A Bill is what a provider bills for the input of a request, in tokens.
type Bill struct {
	Read    int  // from the cache
	Written int  // to the cache, if that is billed
	Rest    int  // neither
	Lost    bool // messages that the request before had cached, and that are still there, were not read
}

// A Cache bills requests in the order in which it is given them.
type Cache interface{ Bill(Request) Bill }

// Caches is a server that reports what a provider's cache has of each request in the usage
// of the answer. It has a request billed when the model has answered it.
type Caches struct {
	Next Model

	// Cache is nil for the common rules: see [CommonCache].
	Cache Cache

	mu    sync.Mutex
	bills []Bill
}

// ServeHTTP answers a request.
func (c *Caches) ServeHTTP(w http.ResponseWriter, r *http.Request) { Model(c.Play).ServeHTTP(w, r) }

// Play returns the model's answer with the tokens of the bill. It is a [Model].
func (c *Caches) Play(got Request, err error) (Step, error) {
	st, err := c.Next(got, err)
	if err != nil {
		return st, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Cache == nil {
		c.Cache = new(CommonCache)
	}
	b := c.Cache.Bill(got)
	c.bills = append(c.bills, b)
	st.Tokens, st.Cached, st.Written = b.Read+b.Written+b.Rest, b.Read, b.Written
	return st, nil
}

// Bills returns those of all requests that were answered, in their order.
func (c *Caches) Bills() []Bill {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bills)
}

// Lost returns how many requests have lost the cache of all messages.
func (c *Caches) Lost() int {
	n := 0
	for _, b := range c.Bills() {
		if b.Lost {
			n++
		}
	}
	return n
}
