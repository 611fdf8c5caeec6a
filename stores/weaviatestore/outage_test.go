package weaviatestore

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everything calls every method of a store in the scope "u". It returns the
// errors by method.
func everything(ctx context.Context, s *Store) map[string]error {
	storing := s.Upsert(ctx, "u", []vector.Record{tool("a", 1, 0)})
	errs := butStoring(ctx, s)
	errs["storing"] = storing
	return errs
}

func butStoring(ctx context.Context, s *Store) map[string]error {
	errs := make(map[string]error)
	_, errs["searching"] = s.Search(ctx, "u", vector.Query{Words: "text", Vector: []float32{1, 0}, Limit: 1})
	_, errs["listing"] = s.Sums(ctx, "u")
	_, errs["reading"] = s.Get(ctx, "u", []string{"a"})
	errs["deleting"] = s.Delete(ctx, "u", []string{"x"})
	errs["dropping"] = s.Drop(ctx, "u")
	return errs
}

// Stored tools are there after a restart of the server, and old stores keep
// working. While it is down, they report that at once.
func TestServerRestarts(t *testing.T) {
	if own == nil {
		t.Skipf("the server that %s names is not ours to end", addrVariable)
	}
	opts := newOptions(t)
	s := open(t, opts)
	var tools []vector.Record
	for i := range 300 {
		tools = append(tools, tool(fmt.Sprintf("t%03d", i), 1, float32(i)))
	}
	require.NoError(t, s.Upsert(t.Context(), "u", tools))
	require.NoError(t, s.Upsert(t.Context(), "v", tools[:1]))
	require.NoError(t, s.Delete(t.Context(), "u", []string{"t007"}))
	q := vector.Query{Words: "t250", Vector: []float32{1, 8}, Limit: 3, Alpha: 0.5}
	before := search(t, s, "u", q)
	require.Len(t, before, 3)
	require.NoError(t, own.stop())

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for doing, err := range everything(ctx, s) {
		assert.ErrorContains(t, err, `weaviatestore: scope "u": `+doing+": ")
		assert.ErrorContains(t, err, "refused")
	}
	require.NoError(t, ctx.Err(), "at once")

	require.NoError(t, own.start())
	assert.Equal(t, before, search(t, s, "u", q))
	sums, err := open(t, opts).Sums(t.Context(), "u")
	require.NoError(t, err)
	assert.Len(t, sums, 299)
	assert.NotContains(t, sums, "t007")
	assert.ErrorIs(t, s.Upsert(t.Context(), "v", []vector.Record{tool("b", 1, 0, 0)}), vector.ErrDimensions)
	for doing, err := range everything(t.Context(), s) {
		assert.NoError(t, err, doing)
	}
}

// A server that accepts and does not answer, or whose connections break, delays
// nobody beyond their deadline.
func TestSlowServer(t *testing.T) {
	opts := newOptions(t)
	l := newLine(t)
	s := l.store(t, opts)
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}))
	assert.Equal(t, []string{"a"}, search(t, s, "u", vector.Query{Words: "text", Limit: 1}))
	l.hush()
	for doing, do := range map[string]func(ctx context.Context) error{
		"searching": func(ctx context.Context) error { return butStoring(ctx, s)["searching"] },
		"storing": func(ctx context.Context) error {
			return s.Upsert(ctx, "u", []vector.Record{tool("a", 1, 0)})
		},
		"storing before anything": func(ctx context.Context) error {
			return l.store(t, opts).Upsert(ctx, "u", []vector.Record{tool("a", 1, 0)})
		},
		"listing": func(ctx context.Context) error {
			_, err := s.Sums(ctx, "u")
			return err
		},
		"deleting": func(ctx context.Context) error { return s.Delete(ctx, "u", []string{"a"}) },
		"dropping": func(ctx context.Context) error { return s.Drop(ctx, "u") },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		begun := time.Now()
		assert.ErrorIs(t, do(ctx), context.DeadlineExceeded, doing)
		assert.Less(t, time.Since(begun), 5*time.Second, doing)
		cancel()
	}
	l.cut()
	for doing, err := range everything(t.Context(), s) {
		assert.ErrorContains(t, err, `weaviatestore: scope "u": `+doing+": ")
	}
	assert.Equal(t, []string{"a"}, search(t, open(t, opts), "u", vector.Query{Words: "text", Limit: 1}), "it is still there")
}

// A context that has ended is reported as such, without a request.
func TestContext(t *testing.T) {
	s := open(t, newOptions(t))
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for doing, err := range everything(canceled, s) {
		assert.ErrorIs(t, err, context.Canceled, doing)
		assert.ErrorContains(t, err, `weaviatestore: scope "u": `, doing)
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for doing, err := range everything(late, s) {
		assert.ErrorIs(t, err, context.DeadlineExceeded, doing)
	}
	assert.EqualError(t, s.Upsert(canceled, "u", nil), `weaviatestore: scope "u": storing: context canceled`)
	assert.ErrorIs(t, s.Delete(canceled, "u", nil), context.Canceled)
	assert.Equal(t, []string{"a"}, search(t, s, "u", vector.Query{Words: "text", Limit: 1}))
}

// Stores of many processes that begin at the same time without a class all
// succeed, and all of their tools are stored.
func TestManyBegin(t *testing.T) {
	const writers, rounds = 8, 4
	opts := newOptions(t)
	var wg sync.WaitGroup
	for w := range writers {
		s := open(t, opts)
		wg.Go(func() {
			for round := range rounds {
				scope := fmt.Sprint("u", (w+round)%rounds)
				for _, v := range [][]float32{{1, 1}, nil} {
					id := fmt.Sprint("w", w, len(v))
					assert.NoError(t, s.Upsert(t.Context(), scope, []vector.Record{tool("same", 1, 1), tool(id, v...)}))
				}
			}
		})
	}
	wg.Wait()
	s := open(t, opts)
	for round := range rounds {
		sums, err := s.Sums(t.Context(), fmt.Sprint("u", round))
		require.NoError(t, err)
		assert.Len(t, sums, 1+2*writers)
	}
}

// If somebody else drops a class or a scope, the next Upsert makes it again.
func TestDroppedByOthers(t *testing.T) {
	opts := newOptions(t)
	s, other := open(t, opts), open(t, opts)
	put := func() {
		t.Helper()
		require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}))
		assert.Equal(t, []string{"a"}, search(t, other, "u", vector.Query{Words: "text", Vector: []float32{1, 0}, Limit: 1}))
	}
	put()
	require.NoError(t, other.Drop(t.Context(), "u"))
	put()
	require.NoError(t, deleteClass(t.Context(), other))
	assert.Empty(t, search(t, s, "u", vector.Query{Words: "text", Vector: []float32{1, 0}, Limit: 1}))
	put()
	require.NoError(t, deleteClass(t.Context(), other))
	for doing, err := range butStoring(t.Context(), s) {
		assert.NoError(t, err, "%s what is not there", doing)
	}
	put()
}

// A hundred users have tools with the same names and find their own, while all
// of them write and search.
func TestHundredTenants(t *testing.T) {
	const users, each, workers = 100, 20, 8
	opts := newOptions(t)
	s := open(t, opts)
	work := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for u := range work {
				scope := fmt.Sprintf("user-%d", u)
				var tools []vector.Record
				for i := range each {
					x := tool(fmt.Sprint("tool", i), 1, float32(i))
					x.Server, x.Text = scope, fmt.Sprintf("shared words of user%d", u)
					tools = append(tools, x)
				}
				if !assert.NoError(t, s.Upsert(t.Context(), scope, tools)) {
					continue
				}
				found, err := s.Search(t.Context(), scope, vector.Query{Words: "shared", Vector: []float32{1, 0}, Alpha: 0.5, Limit: 1000})
				assert.NoError(t, err)
				assert.Len(t, found, each)
				for _, m := range found {
					assert.Equal(t, scope, m.Server)
				}
			}
		})
	}
	for u := range users {
		work <- u
	}
	close(work)
	wg.Wait()
	// Now all are there. The words of another user find nothing, and a deletion
	// by one does not affect the others.
	require.NoError(t, s.Drop(t.Context(), "user-1"))
	require.NoError(t, s.Delete(t.Context(), "user-2", []string{"tool0", "tool1"}))
	for u := range users {
		scope, want := fmt.Sprintf("user-%d", u), each
		switch u {
		case 1:
			want = 0
		case 2:
			want = each - 2
		}
		assert.Len(t, search(t, s, scope, vector.Query{Words: fmt.Sprintf("user%d", u), Limit: 1000}), want)
		assert.Empty(t, search(t, s, scope, vector.Query{Words: fmt.Sprintf("user%d", (u+7)%users), Limit: 1000}))
		assert.Empty(t, search(t, s, scope, vector.Query{Vector: []float32{1, 0}, Limit: 1000, Servers: []string{fmt.Sprintf("user-%d", (u+7)%users)}}))
	}
}

// However this process ends, its server ends with it. A process that starts one
// and panics leaves nobody who holds the other end of a pipe.
func TestPanicLeavesNothing(t *testing.T) {
	if own == nil {
		t.Skip("there is no server of our own")
	}
	if os.Getenv("MCPHYBRID_PANIC") != "" {
		pipe := os.NewFile(3, "pipe")
		cmd, err := own.command()
		require.NoError(t, err)
		cmd.ExtraFiles = []*os.File{pipe}
		require.NoError(t, cmd.Start())
		fmt.Fprintln(pipe, "started")
		panic("on purpose")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	var out strings.Builder
	cmd, err := startAlone(func() *exec.Cmd {
		cmd := exec.Command(self, "-test.run", "^TestPanicLeavesNothing$")
		cmd.Env = append(os.Environ(), "MCPHYBRID_PANIC=1")
		cmd.ExtraFiles = []*os.File{write}
		cmd.Stdout, cmd.Stderr = &out, &out
		return cmd
	})
	require.NoError(t, err)
	require.NoError(t, write.Close())
	require.NoError(t, read.SetReadDeadline(time.Now().Add(30*time.Second)))
	var said [64]byte
	n, err := read.Read(said[:])
	require.NoError(t, err)
	assert.Equal(t, "started\n", string(said[:n]))
	assert.Error(t, cmd.Wait())
	assert.Contains(t, out.String(), "on purpose")
	_, err = read.Read(said[:])
	assert.EqualError(t, err, "EOF", "the server has ended")
}
