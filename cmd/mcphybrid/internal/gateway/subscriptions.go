package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
)

// addSubscriptions has clients told of updates of resources: those with a protocol before
// 2026-07-28 after resources/subscribe, others for as long as they listen for that.
func (g *gateway) addSubscriptions(hooks *server.Hooks) {
	// mcp-go agrees to every subscription, and asks nobody but this hook.
	hooks.AddOnRequestInitialization(func(ctx context.Context, _ any, message any) error {
		raw, _ := message.(json.RawMessage)
		if !bytes.Contains(raw, []byte(mcp.MethodResourcesSubscribe)) {
			return nil
		}
		var r struct {
			Method mcp.MCPMethod `json:"method"`
			Params struct {
				URI  string                     `json:"uri"`
				Meta map[string]json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(raw, &r) != nil || r.Method != mcp.MethodResourcesSubscribe || r.Params.URI == "" || r.Params.Meta[mcp.MetaKeyProtocolVersion] != nil {
			return nil // mcp-go says what is wrong
		}
		err := g.subscribe(ctx, r.Params.URI)
		if err != nil && !errors.As(err, new(*wire.Refusal)) {
			err = wire.Refuse(mcp.INTERNAL_ERROR, nil, err)
		}
		return err
	})
	hooks.AddBeforeUnsubscribe(func(ctx context.Context, _ any, r *mcp.UnsubscribeRequest) {
		if c := g.of(ctx); c != nil {
			c.unsubscribe(r.Params.URI)
		}
	})
	hooks.AddBeforeSubscriptionsListen(func(ctx context.Context, id any, r *mcp.SubscriptionsListenRequest) {
		of := &r.Params.Notifications
		of.ResourceSubscriptions = g.listenTo(ctx, id, of.ResourceSubscriptions)
	})
}

var errNoSession = errors.New("a subscription needs a session")

// subscriptions are those of a client, with a protocol before 2026-07-28.
type subscriptions struct {
	mu sync.Mutex
	by map[string]*subscription // by the client's URI
}

// A subscription is one of a client.
type subscription struct {
	begun chan struct{} // closed when it is known whether there is one
	stop  func()        // ends it; nil before begun, and after a failure
}

// subscribe subscribes the client of a request to a resource, if it is not yet.
func (g *gateway) subscribe(ctx context.Context, name string) error {
	var c *conversation
	var sub *subscription // from the first time on that this is tried
	var stop func()
	err := g.pass(ctx, request{string(mcp.MethodResourcesSubscribe), "", name, nil}, func(ctx context.Context, v *clientCall) (err error) {
		if c = v.from; c.id == "" {
			return errNoSession
		}
		if sub == nil {
			if sub, err = c.begin(ctx, name); sub == nil {
				return err
			}
		}
		stop, err = g.follow(ctx, &follow{of: c, name: name, told: func(changed string) { c.TellUpdate(name, changed) }, end: func() { c.drop(name, sub) }})
		return err
	})
	if sub != nil {
		c.begun(name, sub, stop)
	}
	return notFound(ctx, name, g.scope(ctx).refusal(name, err))
}

// begin returns a new subscription to name, or nil if there is one: then it waits until that
// has begun, and if it fails, returns another.
func (c *conversation) begin(ctx context.Context, name string) (*subscription, error) {
	for {
		c.subscribed.mu.Lock()
		sub := c.subscribed.by[name]
		if sub == nil {
			if c.subscribed.by == nil {
				c.subscribed.by = make(map[string]*subscription)
			}
			sub = &subscription{begun: make(chan struct{})}
			c.subscribed.by[name] = sub
			c.subscribed.mu.Unlock()
			return sub, nil
		}
		c.subscribed.mu.Unlock()
		select {
		case <-sub.begun:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if sub.stop != nil {
			return nil, nil
		}
	}
}

// begun notes whether there is a subscription: if so, stop ends it.
func (c *conversation) begun(name string, sub *subscription, stop func()) {
	c.subscribed.mu.Lock()
	wanted := c.subscribed.by[name] == sub
	if sub.stop = stop; stop == nil && wanted {
		delete(c.subscribed.by, name)
	}
	close(sub.begun)
	c.subscribed.mu.Unlock()
	if stop != nil && !wanted { // the client has ended it meanwhile
		stop()
	}
}

// drop forgets a subscription that has ended, so that the client can have another.
func (c *conversation) drop(name string, sub *subscription) {
	c.subscribed.mu.Lock()
	defer c.subscribed.mu.Unlock()
	if c.subscribed.by[name] == sub {
		delete(c.subscribed.by, name)
	}
}

func (c *conversation) unsubscribe(name string) {
	c.subscribed.mu.Lock()
	var stop func()
	if sub := c.subscribed.by[name]; sub != nil {
		stop = sub.stop
	}
	delete(c.subscribed.by, name)
	c.subscribed.mu.Unlock()
	if stop != nil {
		stop()
	}
	c.ForgetUpdate(name)
}

// A follow is what a client is told of: updates of what it calls name.
type follow struct {
	of   *conversation
	name string
	told func(changed string) // gets the client's name of what has changed
	end  func()               // called when it has ended by itself; or nil

	// Guarded by follows.
	number int // in the order in which they began
	stop   func()
}

// follows are those of all clients.
type follows struct {
	mu    sync.Mutex
	all   map[*follow]struct{}
	begun int
}

// follow subscribes a client's Session as f says, until stop is called. The subscription
// outlives its server if that is replaced.
func (g *gateway) follow(ctx context.Context, f *follow) (stop func(), err error) {
	g.updates.add(f)
	if stop, err = f.begin(ctx); err != nil {
		g.updates.replace(f, nil)
		return nil, err
	}
	g.updates.replace(f, stop)
	return func() { g.updates.replace(f, nil) }, nil
}

func (f *follow) begin(ctx context.Context) (stop func(), err error) {
	from, own := f.of.named(f.name)
	return f.of.session.SubscribeResource(ctx, from, own, func(changed string) {
		if changed == own || from == "" && f.of.only == "" { // whose part it is, is not said
			changed = f.name
		} else {
			changed = f.of.uri(from, changed)
		}
		f.told(changed)
	})
}

func (s *follows) add(f *follow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*follow]struct{})
	}
	s.begun++
	f.number = s.begun
	s.all[f] = struct{}{}
}

// replace ends the subscription of f at its server. One that ends by calling by comes in its
// place; without by, f ends. It reports whether f had not ended before.
func (s *follows) replace(f *follow, by func()) bool {
	s.mu.Lock()
	_, isOpen := s.all[f]
	ended := f.stop
	if f.stop = by; by == nil {
		delete(s.all, f)
	} else if !isOpen {
		f.stop, ended = nil, by
	}
	s.mu.Unlock()
	if ended != nil {
		ended()
	}
	return isOpen
}

// of returns those that may be of a server, in the order in which they began.
func (s *follows) of(server string) (list []*follow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.all {
		if from, _ := f.of.named(f.name); from == server || from == "" {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *follow) int { return cmp.Compare(a.number, b.number) })
	return list
}

// gone forgets what a client was told of, whose Session is closed.
func (s *follows) gone(c *conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(f *follow, _ struct{}) bool { return f.of == c })
}

// followAgain renews the subscriptions to resources of a server that was replaced, and ends
// those to what it does not have. Clients are told that these resources have changed: they may have.
func (g *gateway) followAgain(ctx context.Context, server string) {
	for _, f := range g.updates.of(server) {
		g.updates.replace(f, func() {}) // it counts among those that the Session may have
		stop, err := f.begin(ctx)
		switch {
		case ctx.Err() != nil: // the next change of the server renews it
			if err == nil {
				g.updates.replace(f, stop)
			}
		case err == nil && g.updates.replace(f, stop):
			g.started.Go(func() { f.told(f.name) })
		case err != nil && g.updates.replace(f, nil) && f.end != nil:
			f.end()
		}
	}
}

// maxListened is how many resources a client can listen to by one request.
const maxListened = 100

// listenTo subscribes a client that listens by a request to resources, until ctx ends, and
// returns those that it will be told of.
func (g *gateway) listenTo(ctx context.Context, id any, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	to := server.ClientSessionFromContext(ctx)
	if to == nil {
		return nil
	}
	names = slices.Clone(names[:min(len(names), maxListened)])
	slices.Sort(names)
	names = slices.Compact(names)
	c := g.client(ctx)
	acknowledged := g.acknowledged(ctx, id)
	var stops []func() // guarded by mu
	var mu sync.Mutex
	var all sync.WaitGroup
	agreed := make([]bool, len(names))
	for i, name := range names {
		all.Go(func() {
			agreed[i] = g.pass(ctx, request{string(mcp.MethodSubscriptionsListen), "", name, nil}, func(inner context.Context, _ *clientCall) error {
				stop, err := g.follow(inner, &follow{of: c, name: name, told: func(changed string) {
					n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: mcp.MethodNotificationResourceUpdated, Params: mcp.NotificationParams{
						Meta: map[string]any{mcp.MetaKeySubscriptionID: id}, AdditionalFields: map[string]any{"uri": changed},
					}}}
					select {
					case <-acknowledged: // first comes what the client is told of
					case <-ctx.Done():
						return
					}
					select {
					case to.NotificationChannel() <- n:
					case <-ctx.Done():
					}
				}})
				if err == nil {
					mu.Lock()
					stops = append(stops, stop)
					mu.Unlock()
				}
				return err
			}) == nil
		})
	}
	all.Wait()
	context.AfterFunc(ctx, func() {
		for _, stop := range stops {
			stop()
		}
		if c.id == "" { // nobody else has its session
			c.session.Close()
		}
	})
	var told []string
	for i, name := range names {
		if agreed[i] {
			told = append(told, name)
		}
	}
	return told
}

// acknowledged returns a channel that is closed when the client has the acknowledgement of a
// request to listen, which comes first.
func (g *gateway) acknowledged(ctx context.Context, id any) <-chan struct{} {
	if w := wire.EventsOf(ctx); w != nil {
		return w.Begun()
	}
	quoted, _ := json.Marshal(id)
	return g.lines.Acknowledged(ctx, quoted)
}
