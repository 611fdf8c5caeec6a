package wire

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A stuck stream takes nothing, once it goes on.
type stuck chan struct{}

func (s stuck) Notify(string, any) bool {
	<-s
	return false
}

// What is forgotten while a stream that fails is written to waits no longer. What is not
// forgotten does.
func TestUpdatesAreForgottenWhileTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNotices()
		n.Begin()
		for _, of := range []string{"gone", "kept"} {
			s := make(stuck)
			n.Attach(s, true)
			n.TellUpdate(of, of)
			synctest.Wait()
			n.ForgetUpdate("gone")
			close(s)
			synctest.Wait()
		}
		assert.Equal(t, []notice{{method: "notifications/resources/updated", of: "kept", uri: "kept"}}, n.due)
	})
}

// A heard stream keeps what it takes.
type heard struct{ params []any }

func (h *heard) Notify(_ string, params any) bool {
	h.params = append(h.params, params)
	return true
}

// Log messages wait for a stream, within their limits, in their order. The oldest are dropped,
// and nothing else is.
func TestLogMessagesWait(t *testing.T) {
	numbers := func(from, to int) (list []any) {
		for i := from; i < to; i++ {
			list = append(list, i)
		}
		return list
	}
	updates := map[string]string{"uri": "x"}
	for name, test := range map[string]struct {
		bytes func(i int) int
		want  []any
	}{
		"as many as may wait":  {func(int) int { return 1 }, append([]any{updates}, numbers(150-maxLogs, 150)...)},
		"as large as may wait": {func(int) int { return maxLogBytes / 4 }, append([]any{updates}, numbers(146, 150)...)},
		"a larger one":         {func(i int) int { return 1 + i/149*maxLogBytes }, []any{updates, 149}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := NewNotices()
				n.TellUpdate("x", "x")
				for i := range 150 {
					n.TellLog(i, test.bytes(i))
				}
				n.Begin()
				s := new(heard)
				n.Attach(s, true)
				synctest.Wait()
				assert.Equal(t, test.want, s.params)
			})
		})
	}
}

// Log messages that wait leave the updates their room.
func TestUpdatesBesideLogMessages(t *testing.T) {
	n := NewNotices()
	for i := range maxLogs {
		n.TellLog(i, 1)
	}
	n.TellUpdate("mem://", "mem://part")
	assert.Equal(t, "mem://part", n.due[maxLogs].uri)
}

// said is a stream that keeps the methods, until it is full.
type said struct {
	methods []string
	room    int
}

func (s *said) Notify(method string, _ any) bool {
	if len(s.methods) == s.room {
		return false
	}
	s.methods = append(s.methods, method)
	return true
}

// What is told waits for the client, then for a stream, once each.
func TestNoticesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := NewNotices(), &said{room: 9}
		assert.False(t, n.Begun())
		detach := n.Attach(s, true)
		for _, method := range []string{"a", "b", "a"} {
			n.Tell(method)
		}
		synctest.Wait()
		assert.Empty(t, s.methods, "the client is not ready")
		n.Begin()
		assert.True(t, n.Begun())
		synctest.Wait()
		assert.Equal(t, []string{"a", "b"}, s.methods)
		n.TellLog("log", 1)
		synctest.Wait()
		assert.Equal(t, []string{"a", "b", methodLog}, s.methods, "the client is told at once")
		s.methods = s.methods[:2]
		n.Tell("a")
		synctest.Wait()
		assert.Equal(t, []string{"a", "b", "a"}, s.methods, "the first one waits no longer")
		detach()
		n.Tell("c")
		synctest.Wait()
		assert.Len(t, s.methods, 3, "there is no stream")
		n.Attach(s, true)
		synctest.Wait()
		assert.Equal(t, []string{"a", "b", "a", "c"}, s.methods)
	})
}

// A stream that stays is better than an answer, and the last of those that stay is the best. What one
// does not take goes to the next.
func TestBestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, first, last, answer := NewNotices(), &said{room: 9}, &said{room: 2}, new(said)
		n.Begin()
		n.Attach(first, true)
		n.Attach(last, true)
		n.Attach(answer, false)
		for _, method := range []string{"a", "b", "c", "d"} {
			n.Tell(method)
		}
		synctest.Wait()
		assert.Equal(t, []string{"a", "b"}, last.methods)
		assert.Equal(t, []string{"c", "d"}, first.methods)
		assert.Equal(t, []Sink{answer, first}, n.streams)
	})
}

// While the client waits for a list, it is not told that the list has changed; nor afterwards, unless the
// change may be one of templates.
func TestNoticesOfAListThatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tools, resources = "notifications/tools/list_changed", "notifications/resources/list_changed"
		n, s := NewNotices(), &said{room: 9}
		n.Begin()
		n.Attach(s, true)
		for _, method := range []string{tools, resources} {
			first, second := n.Ask(method), n.Ask(method)
			n.Tell(method)
			n.Tell("other")
			synctest.Wait()
			first()
			synctest.Wait()
			assert.True(t, n.Waits(method))
			assert.Equal(t, []string{"other"}, s.methods)
			n.Tell(method)
			second()
			synctest.Wait()
			assert.False(t, n.Waits(method))
			if method == resources {
				assert.Equal(t, []string{"other", resources}, s.methods)
			} else {
				assert.Equal(t, []string{"other"}, s.methods)
			}
			s.methods = nil
			n.Tell(method)
			synctest.Wait()
			assert.Equal(t, []string{method}, s.methods)
			s.methods = nil
		}
	})
}

// If 100 updates wait, what the client is subscribed to stands for the parts that follow.
func TestUpdatesThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := NewNotices(), new(heard)
		n.TellLog("log", 1)
		var want []any
		for i := range 105 {
			uri := fmt.Sprint("whole/", i)
			n.TellUpdate("whole", uri)
			if i < 100 {
				want = append(want, map[string]string{"uri": uri})
			}
		}
		n.Begin()
		n.Attach(s, true)
		synctest.Wait()
		assert.Equal(t, append(append([]any{"log"}, want...), map[string]string{"uri": "whole"}), s.params)
	})
}

// Who waits for a stream waits for one that stays: an answer is none.
func TestAwaitStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNotices()
		waits := func() bool {
			ctx, enough := context.WithTimeout(t.Context(), time.Second)
			defer enough()
			return n.AwaitStream(ctx)
		}
		n.Attach(new(heard), false)
		assert.False(t, waits())
		left := make(chan func(), 1)
		time.AfterFunc(time.Second/2, func() { left <- n.Attach(new(heard), true) })
		assert.True(t, waits())
		assert.True(t, waits())
		(<-left)()
		assert.False(t, waits())
	})
}
