package wire

import (
	"testing"
	"testing/synctest"

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
