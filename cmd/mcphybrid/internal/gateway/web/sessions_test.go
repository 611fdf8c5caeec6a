package web

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of sessions that are begun, used and left at random, the surplus one is the first by whether it was ever
// used, and then by how long it was silent. One with a request stays.
func TestWhichSessionIsSurplus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dice := rand.New(rand.NewPCG(3, 4))
		for range 30 {
			s := newSessions(6)
			ended := ""
			s.End = func(id string) { ended = id }
			type known struct {
				id     string
				used   bool
				silent time.Time
				leaves []func()
			}
			var all []*known
			for range 150 {
				time.Sleep(time.Second)
				if k := dice.IntN(10); k < 3 || len(all) == 0 {
					idle := slices.DeleteFunc(slices.Clone(all), func(k *known) bool { return len(k.leaves) > 0 })
					slices.SortFunc(idle, func(a, b *known) int {
						if a.used != b.used {
							return map[bool]int{false: -1, true: 1}[a.used]
						}
						return a.silent.Compare(b.silent)
					})
					want := ""
					if len(all) >= 6 && len(idle) > 0 {
						want = idle[0].id
						all = slices.DeleteFunc(all, func(k *known) bool { return k.id == want })
					}
					ended = ""
					id, leave := begin(s, nil)
					all = append(all, &known{id: id, silent: time.Now(), leaves: []func(){leave}})
					require.Equal(t, want, ended)
				} else if one := all[dice.IntN(len(all))]; k < 5 {
					of := s.enter(one.id, owner{}, false)
					require.NotNil(t, of)
					one.used, one.silent, one.leaves = true, time.Now(), append(one.leaves, func() { s.leave(of) })
				} else if k < 6 {
					require.NotNil(t, s.enter(one.id, owner{}, true))
					one.used, one.silent = true, time.Now()
				} else if last := len(one.leaves) - 1; last >= 0 {
					one.leaves[last]()
					one.silent, one.leaves = time.Now(), one.leaves[:last]
				}
				require.Equal(t, len(all), s.Count())
			}
		}
	})
}

// A session ends when nothing was asked, answered or told in it for long. One with a call that
// takes longer stays, and the call has its answer.
func TestSilentSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = time.Minute
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		table := newSessions(10)
		var ended []string
		table.End = func(id string) { ended = append(ended, id) }
		go table.EndSilent(ctx, long)
		said := make(chan string) // to the client that listens
		site := table.withSession(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get(server.HeaderKeySessionID) == "":
				_, _ = io.WriteString(out, table.ResolveSessionIdManager(r).Generate())
			case r.Method == http.MethodGet:
				for {
					select {
					case text := <-said:
						_, _ = io.WriteString(out, text)
						assert.NoError(t, http.NewResponseController(out).Flush())
					case <-r.Context().Done():
						return
					}
				}
			default:
				select {
				case <-time.After(5 * long):
					_, _ = io.WriteString(out, "answered")
				case <-r.Context().Done():
				}
			}
		}))
		ask := func(method, id string) string {
			r := httptest.NewRequestWithContext(t.Context(), method, "/mcp", nil)
			if id != "" {
				r.Header.Set(server.HeaderKeySessionID, id)
			}
			out := httptest.NewRecorder()
			site.ServeHTTP(out, r)
			return out.Body.String()
		}
		silent, busy, listens := ask(http.MethodPost, ""), ask(http.MethodPost, ""), ask(http.MethodPost, "")
		answer, heard := make(chan string, 1), make(chan string, 1)
		go func() { answer <- ask(http.MethodPost, busy) }()
		go func() { heard <- ask(http.MethodGet, listens) }()
		for range 8 {
			time.Sleep(long / 2)
			said <- "x"
		}
		synctest.Wait()
		assert.Equal(t, []string{silent}, ended)
		require.Equal(t, 2, table.Count())

		time.Sleep(long / 2) // before the answer
		said <- "x"
		assert.Equal(t, "answered", <-answer)
		assert.Equal(t, 2, table.Count())
		time.Sleep(2 * long)
		synctest.Wait()
		assert.Zero(t, table.Count())
		assert.Equal(t, "xxxxxxxxx", <-heard, "the stream ends with the session")
	})
}
