package mcphybrid

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Breaks session.go:25, "Its methods may be called concurrently": a Turn
// panics with "slice bounds out of range" if the Manager is closed, or the user is dropped,
// while it runs. takeTurn asks twice for the view of the session, at turn.go:224 and
// turn.go:240; if the Manager ends between these, the list is nil, and writeTurn cuts
// list[:said.base], turn.go:349.
func TestBreakTurnWhileTheManagerCloses(t *testing.T) {
	var mu sync.Mutex
	var panics []any
	for range 3000 {
		m := NewManager(nil)
		require.NoError(t, m.AddTools("a", manyTools(2)...))
		require.NoError(t, m.AddTools("b", manyTools(2)...))
		var wg, begun sync.WaitGroup
		for range 4 {
			s := m.NewSession(nil)
			turnOf(t, s, FormatAnthropic, "claude-opus-5-5")
			begun.Add(1)
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						mu.Lock()
						panics = append(panics, fmt.Sprint(p))
						mu.Unlock()
					}
				}()
				begun.Done()
				for err := error(nil); err == nil; {
					_, err = s.Turn(FormatAnthropic, "claude-opus-5-5")
				}
			})
		}
		begun.Wait()
		m.Close()
		wg.Wait()
		if panics != nil {
			break
		}
	}
	require.Empty(t, panics)
}
