package clients

import (
	"regexp"
	"sync"
)

// An expression is a regular expression that is compiled when it is first used, so that
// a host that reads no file has no part in it.
type expression struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

func (e *expression) get() *regexp.Regexp {
	e.once.Do(func() { e.compiled = regexp.MustCompile(e.text) })
	return e.compiled
}
