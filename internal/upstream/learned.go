package upstream

import "sync/atomic"

// learned is what connections have taught that later ones are made with, so that a server's
// silence is waited for once. It is about servers that don't answer, which costs time: a
// server that refuses is asked again each time, and so found as it is once it was upgraded.
type learned struct {
	silent atomic.Bool // it leaves server/discover without an answer, and can initialize
	deaf   atomic.Bool // over standard input and output, it can't be subscribed to
}

// forget has the next connection find out again.
func (l *learned) forget() {
	l.silent.Store(false)
	l.deaf.Store(false)
}
