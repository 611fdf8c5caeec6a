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
		assert.Equal(t, []notice{{"notifications/resources/updated", "kept", "kept"}}, n.due)
	})
}
