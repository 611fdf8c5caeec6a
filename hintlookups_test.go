package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/enrich"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A lookupFunc is an enricher.
type lookupFunc func(ctx context.Context, t hints.Tool) (hints.Hints, bool, error)

func (f lookupFunc) LookupHints(ctx context.Context, t hints.Tool) (hints.Hints, bool, error) {
	return f(ctx, t)
}

// chores returns n local tools.
func chores(n int) []mcpserver.ServerTool {
	var tools []mcpserver.ServerTool
	for i := range n {
		tools = append(tools, echoTool(fmt.Sprintf("t%04d", i), fmt.Sprintf("Does chore %d", i)))
	}
	return tools
}

// enriched returns how many tools of m have hints.
func enriched(m *Manager) (n int) {
	for t := range m.def.view().each() {
		if _, ok := hintsOf(m.Default(), t.name); ok {
			n++
		}
	}
	return n
}

// logged returns a logger and the text that it writes.
func logged() (*slog.Logger, func() string) {
	var log mcptest.Log
	return slog.New(slog.NewTextHandler(&log, nil)), log.String
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// SPEC E4: each tool is looked up once, several at a time and in the
// background. All results within a short time become one version of the
// catalog.
func TestSpecE4LookupsAreBatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := make(map[string]int)
		versions := make(map[*catalog]bool)
		now, most := 0, 0
		var m *Manager
		m, _ = newTestManager(t, &Options{Enricher: lookupFunc(func(_ context.Context, tool hints.Tool) (hints.Hints, bool, error) {
			mu.Lock()
			asked[tool.Name()]++
			versions[m.cur.Load()] = true
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(10 * time.Millisecond) // like a service
			mu.Lock()
			now--
			mu.Unlock()
			return hints.Hints{OutputShape: "about " + tool.OriginalName()}, true, nil
		})})
		require.NoError(t, m.AddTools("s", chores(1000)...))
		assert.Zero(t, enriched(m), "nothing waits for hints")
		time.Sleep(enrich.PublishEvery + 20*time.Millisecond)
		some := enriched(m)
		assert.Greater(t, some, 300)
		assert.Less(t, some, 1000)
		time.Sleep(time.Minute)
		assert.Equal(t, 1000, enriched(m))
		mu.Lock()
		assert.Len(t, asked, 1000)
		assert.Equal(t, enrich.MaxLookups, most)
		versions[m.cur.Load()] = true
		// 125 times 10 ms: the tools, two batches in between, and the last one.
		assert.Len(t, versions, 4)
		mu.Unlock()

		// An unchanged tool is not looked up again.
		require.NoError(t, m.AddTools("s", echoTool("other", "Other")))
		time.Sleep(time.Minute)
		mu.Lock()
		assert.Len(t, asked, 1001)
		for name, n := range asked {
			assert.Equal(t, 1, n, name)
		}
		mu.Unlock()
		assert.Equal(t, 1001, enriched(m))

		// The hints of a removed tool are forgotten.
		m.RemoveServer("s")
		synctest.Wait()
		m.mu.Lock()
		assert.Empty(t, m.lookups.Known())
		m.mu.Unlock()
	})
}

// SPEC E4: a lookup that hangs, panics, fails or returns too much is logged. It
// costs the hints of its own tool and nothing else.
func TestSpecE4BadLookupsCostTheirHintsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		log, text := logged()
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Logger: log, Enricher: lookupFunc(func(ctx context.Context, tool hints.Tool) (hints.Hints, bool, error) {
			good := hints.Hints{OutputShape: "fine"}
			switch tool.OriginalName() {
			case "t0000":
				<-release // ignores its context
				return good, true, nil
			case "t0001":
				<-ctx.Done()
				return good, true, ctx.Err()
			case "t0002":
				panic("oh\nno " + strings.Repeat("x", 1<<20))
			case "t0003":
				return good, true, errors.New("unknown\ntool")
			case "t0004":
				return hints.Hints{OutputShape: strings.Repeat("x", 1<<20)}, true, nil
			case "t0005":
				return good, false, nil
			}
			return good, true, nil
		})})
		require.NoError(t, m.AddTools("s", chores(10)...))
		start := time.Now()
		err := m.RefreshHints(t.Context())
		assert.LessOrEqual(t, time.Since(start), 2*defaultEnrichTimeout, "the first, and again")
		assert.ErrorContains(t, err, "mcphybrid: hints: looking up those of 5 tools failed: tool ")
		assert.Equal(t, 4, enriched(m))
		for i := range 10 {
			h, ok := hintsOf(m.Default(), fmt.Sprintf("mcp_s__t%04d", i))
			assert.Equal(t, i > 5, ok)
			assert.Equal(t, i > 5, h.OutputShape == "fine")
			assert.Len(t, m.Search(fmt.Sprintf("chore %d", i), 1), 1)
		}
		for _, want := range []string{
			`tool=mcp_s__t0000 error="no answer within 5s: context deadline exceeded"`,
			`tool=mcp_s__t0001 error=`, `tool=mcp_s__t0002 error="the enricher: panic: oh no xx`, `tool=mcp_s__t0003 error="unknown\ntool"`,
			`tool=mcp_s__t0004 error="\"output_shape\" has 1048576 bytes, more than the limit of 500"`,
		} {
			assert.Contains(t, text(), want)
		}
		assert.NotContains(t, text(), "t0005")
		assert.Less(t, len(text()), 20_000)
		assert.NotContains(t, m.Problems(), "hints")
	})
}

// SPEC E4: a service that is down does not fill the log.
func TestSpecE4FailuresAreLoggedInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, text := logged()
		m, _ := newTestManager(t, &Options{Logger: log, Enricher: lookupFunc(func(context.Context, hints.Tool) (hints.Hints, bool, error) {
			return hints.Hints{}, false, errors.New("down")
		})})
		require.NoError(t, m.AddTools("s", chores(1000)...))
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(text()), "\n")
		require.Len(t, lines, enrich.MaxLogged+1)
		assert.Contains(t, lines[enrich.MaxLogged], `"mcphybrid: looking up the hints of more tools failed" tools=990`)
	})
}

// SPEC E4: however many lookups hang, the number of goroutines is bounded. When
// a lookup returns after all, others continue.
func TestSpecE4HangingLookupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var begun atomic.Int32
		log, text := logged()
		m, _ := newTestManager(t, &Options{Logger: log, Enricher: lookupFunc(func(context.Context, hints.Tool) (hints.Hints, bool, error) {
			if begun.Add(1) <= 500 {
				<-release
			}
			return hints.Hints{OutputShape: "late"}, true, nil
		})})
		require.NoError(t, m.AddTools("s", chores(1000)...))
		time.Sleep(time.Hour)
		assert.EqualValues(t, enrich.MaxInside, begun.Load())
		assert.Equal(t, 1, strings.Count(text(), "lookups of hints hang"))
		assert.Equal(t, enrich.MaxInside, strings.Count(text(), "looking up the hints of a tool failed\" tool="))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, m.RefreshHints(ctx), context.DeadlineExceeded)
		close(release)
		time.Sleep(time.Minute)
		assert.Equal(t, 1000, enriched(m), "those that failed were asked again")
	})
}

// Close waits only for lookups that heed their context.
func TestSpecE4CloseEndsLookups(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		t.Run(fmt.Sprintf("heeds %v", heeds), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var inside atomic.Int32
				m := NewManager(&Options{Enricher: lookupFunc(func(ctx context.Context, _ hints.Tool) (hints.Hints, bool, error) {
					inside.Add(1)
					defer inside.Add(-1)
					if heeds {
						<-ctx.Done()
						time.Sleep(100 * time.Millisecond) // to tidy up
						return hints.Hints{}, false, ctx.Err()
					}
					<-release
					return hints.Hints{}, false, nil
				})})
				require.NoError(t, m.AddTools("s", chores(20)...))
				synctest.Wait()
				assert.EqualValues(t, enrich.MaxLookups, inside.Load())
				refreshed := make(chan error, 1)
				go func() { refreshed <- m.RefreshHints(context.Background()) }()
				synctest.Wait()
				start := time.Now()
				require.NoError(t, m.Close())
				assert.ErrorIs(t, <-refreshed, ErrClosed)
				assert.ErrorIs(t, m.RefreshHints(t.Context()), ErrClosed)
				if heeds {
					assert.Equal(t, 100*time.Millisecond, time.Since(start))
					assert.Zero(t, inside.Load())
				} else {
					assert.Equal(t, enrich.LookupsEnd, time.Since(start))
					assert.EqualValues(t, enrich.MaxLookups, inside.Load())
				}
				close(release)
			})
		})
	}
}

// RefreshHints returns when new hints are in the catalog. Unchanged hints are
// not indexed again, and a tool whose lookup fails keeps its hints.
func TestSpecE4RefreshHints(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	known := table{"mcp_s__a": {OutputShape: "zeppelin"}, "mcp_s__b": {OutputShape: "quinoa"}, "mcp_s__c": {OutputShape: "ferry"}}
	var failing error
	m := withHints(t, lookupFunc(func(ctx context.Context, tool hints.Tool) (hints.Hints, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		h, ok, _ := known.LookupHints(ctx, tool)
		return h, ok, failing
	}), 4, Options{Inline: InlineOptions{Max: -1}})
	change := func(f func()) {
		mu.Lock()
		f()
		mu.Unlock()
	}
	documents := func() map[string]*search.Document {
		docs := make(map[string]*search.Document)
		x := m.cur.Load().index().(*search.Index)
		for i, t := range m.cur.Load().documents() {
			docs[t.name] = x.Document(i)
		}
		return docs
	}
	before, version := documents(), m.cur.Load()
	require.NoError(t, m.RefreshHints(t.Context()))
	assert.Same(t, version, m.cur.Load(), "nothing has changed")

	change(func() {
		delete(known, "mcp_s__a")
		known["mcp_s__b"] = hints.Hints{OutputShape: "gondola"}
		known["mcp_s__d"] = hints.Hints{OutputShape: "quinoa"}
	})
	require.NoError(t, m.RefreshHints(t.Context()))
	assert.Empty(t, m.Search("zeppelin", 5))
	assert.Equal(t, []string{"mcp_s__b"}, hitNames(m.Search("gondola", 5)))
	assert.Equal(t, []string{"mcp_s__d"}, hitNames(m.Search("quinoa", 5)))
	after := documents()
	assert.Same(t, before["mcp_s__c"], after["mcp_s__c"])
	assert.NotSame(t, before["mcp_s__b"], after["mcp_s__b"])

	change(func() { failing = errors.New("the service is down") })
	version = m.cur.Load()
	assert.EqualError(t, m.RefreshHints(t.Context()), `mcphybrid: hints: looking up those of 4 tools failed: tool "mcp_s__a": the service is down`)
	assert.Same(t, version, m.cur.Load())
	assert.Equal(t, 3, enriched(m))

	require.NoError(t, m.AddTools("s", echoTool("e", "E")))
	assert.Same(t, after["mcp_s__d"], documents()["mcp_s__d"], "hints outlive a change of the catalog")
	assert.Equal(t, []string{"mcp_s__d"}, hitNames(m.Search("quinoa", 5)))
}

// RefreshHints does not accept the result of a lookup that began before it.
func TestSpecE4RefreshHintsAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Int32
		release := make(chan struct{})
		m, _ := newTestManager(t, &Options{Enricher: lookupFunc(func(context.Context, hints.Tool) (hints.Hints, bool, error) {
			n := answers.Add(1)
			<-release
			return hints.Hints{OutputShape: fmt.Sprint(n)}, true, nil
		})})
		require.NoError(t, m.AddTools("s", echoTool("a", "A")))
		synctest.Wait()
		refreshed := make(chan error)
		go func() { refreshed <- m.RefreshHints(t.Context()) }()
		synctest.Wait()
		close(release)
		require.NoError(t, <-refreshed)
		h, _ := hintsOf(m.Default(), "mcp_s__a")
		assert.Equal(t, "2", h.OutputShape)
	})
}

// A lookup may use the Manager, and close it.
func TestSpecE4LookupsMayCallBack(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	var m *Manager
	m, _ = newTestManager(t, &Options{Enricher: lookupFunc(func(_ context.Context, tool hints.Tool) (hints.Hints, bool, error) {
		if tool.OriginalName() == "last" {
			_ = m.Close()
			close(closed)
		} else {
			m.Search("chore", 3)
			_ = m.AddTools("more", echoTool("last", "Last"))
		}
		return hints.Hints{OutputShape: m.Default().OverrideBlock()}, true, nil
	})})
	require.NoError(t, m.AddTools("s", echoTool("first", "First")))
	<-closed
}

// SPEC E4, E6: hints come, change and go while sessions search, show and call.
// At the end all hints are there.
func TestSpecE4HintsFromManyGoroutines(t *testing.T) {
	t.Parallel()
	var lookups atomic.Int64
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 5}, Enricher: lookupFunc(func(_ context.Context, tool hints.Tool) (hints.Hints, bool, error) {
		n := lookups.Add(1)
		if n%7 == 0 {
			return hints.Hints{}, false, fmt.Errorf("failure %d", n)
		}
		return hints.Hints{Preconditions: []string{fmt.Sprintf("version %d", n)}, OutputShape: "about " + tool.OriginalName()}, true, nil
	})})
	require.NoError(t, m.AddTools("s", chores(40)...))
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		writers.Go(func() {
			server := fmt.Sprintf("w%d", i)
			for range 15 {
				assert.NoError(t, m.AddTools(server, chores(5)...))
				_ = m.RefreshHints(t.Context())
				assert.True(t, m.RemoveServer(server))
			}
		})
		readers.Go(func() {
			s := m.NewSession(nil)
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				s.Search(fmt.Sprintf("version %d", n%50), 3)
				s.ActivateTools([]string{fmt.Sprintf("mcp_s__t%04d", n%40)})
				if block := s.OverrideBlock(); block != "" {
					assert.True(t, strings.HasPrefix(block, blockHeading))
				}
				if n%20 == 0 {
					assert.NoError(t, check(m, s))
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	for m.RefreshHints(t.Context()) != nil { // until one seventh of it happened to each
		if enriched(m) == 40 {
			break
		}
	}
	assert.Equal(t, 40, enriched(m))
	assert.Len(t, m.Search("about t0031", 1), 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.Len(t, m.lookups.Known(), 40)
}
