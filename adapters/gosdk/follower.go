package gosdk

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A follower takes what the servers of one client tell, for the sources that a Manager
// listens to. A client keeps its middleware for ever, and a host may connect it again and
// again, so it gets one only.
type follower struct {
	once    sync.Once
	mu      sync.Mutex
	sources map[*source]bool // those with a listener
}

// followers has them by weak pointers to the clients.
var followers sync.Map

func follow(client *mcp.Client) *follower {
	key := weak.Make(client)
	known, _ := followers.LoadOrStore(key, &follower{sources: make(map[*source]bool)})
	f := known.(*follower)
	f.once.Do(func() {
		client.AddReceivingMiddleware(f.middleware)
		runtime.AddCleanup(client, func(key weak.Pointer[mcp.Client]) { followers.Delete(key) }, key)
	})
	return f
}

func (f *follower) set(s *source, listens bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if listens {
		f.sources[s] = true
	} else {
		delete(f.sources, s)
	}
}

// middleware passes on all but reports of the Manager's calls, of which the host's handler
// knows nothing.
func (f *follower) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		f.mu.Lock()
		sources := slices.Collect(maps.Keys(f.sources))
		f.mu.Unlock()
		for _, s := range sources {
			if req.GetSession() != mcp.Session(s.session) {
				continue
			}
			if p, ok := req.GetParams().(*mcp.ProgressNotificationParams); ok && s.progress(p) {
				return nil, nil
			}
			s.changed(method)
		}
		return next(ctx, method, req)
	}
}
