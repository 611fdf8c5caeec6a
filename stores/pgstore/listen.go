package pgstore

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A listener hears which documents have changed, for all that watch one, over one connection
// that is not of the pool. It has it while somebody watches.
type listener struct {
	of *Shared

	mu       sync.Mutex
	watchers map[chan struct{}]string // the name of the document, by what wakes who watches it
	end      func()                   // ends listening and waits for that; nil if nobody watches
}

// watch returns a channel that gets a value, of capacity 1, when the document with that name may
// have changed, until stop is called.
func (l *listener) watch(name string) (changed <-chan struct{}, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() {
			defer close(over)
			l.listen(ctx)
		}()
		l.end = func() {
			cancel()
			<-over
		}
	}
	wake := make(chan struct{}, 1)
	l.watchers[wake] = name
	return wake, func() { l.leave(wake) }
}

func (l *listener) leave(wake chan struct{}) {
	l.mu.Lock()
	delete(l.watchers, wake)
	var end func()
	if len(l.watchers) == 0 {
		end, l.end = l.end, nil
	}
	l.mu.Unlock()
	if end != nil {
		end()
	}
}

// wake wakes those who watch a document, or all if name is "".
func (l *listener) wake(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for wake, of := range l.watchers {
		if name == "" || of == name {
			select {
			case wake <- struct{}{}:
			default: // it has not looked yet
			}
		}
	}
}

// listen hears until ctx ends. Without a connection it tries again.
func (l *listener) listen(ctx context.Context) {
	for ctx.Err() == nil {
		_ = l.hear(ctx) // the database can't be reached, unless ctx has ended
		select {
		case <-time.After(min(l.of.opts.Poll, time.Second)):
		case <-ctx.Done():
		}
	}
}

// connect makes a connection as the pool does.
func (l *listener) connect(ctx context.Context) (*pgx.Conn, error) {
	config := l.of.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

// hear wakes those who watch until the connection is lost or ctx ends.
func (l *listener) hear(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, l.of.opts.Timeout)
	conn, err := l.connect(within)
	if err == nil {
		_, err = conn.Exec(within, "LISTEN "+l.of.channel, l.of.mode)
	}
	cancel()
	if conn != nil {
		defer func() {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = conn.Close(within) // it is of no use any more
		}()
	}
	if err != nil {
		return err
	}
	l.wake("") // of what changed before
	for {
		wait, cancel := context.WithTimeout(ctx, l.of.opts.Poll)
		said, err := conn.WaitForNotification(wait)
		late := wait.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			l.wake(said.Payload)
		case !late:
			return err
		default: // is it lost unnoticed?
			within, cancel := context.WithTimeout(ctx, l.of.opts.Timeout)
			err := conn.Ping(within)
			cancel()
			if err != nil {
				return err
			}
		}
	}
}
