package mcphybrid

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDebugPlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr := NewManager(&Options{MaxInline: 2})
		var tools []mcpserver.ServerTool
		for i := range 20 {
			tools = append(tools, echoTool(fmt.Sprintf("tool_%02d", i), "Does a chore"))
		}
		require.NoError(t, mgr.AddTools("a", tools...))
		h := mgr.DebugHandler()
		d := h.(*debugger)
		begun := time.Now()
		synctest.Wait()
		assert.Contains(t, pageText(t, h, ""), "Nothing was measured yet.")
		s := mgr.NewSession(nil)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		was := d.plot()
		st := s.Stats().Tokens
		assert.Equal(t, st.All, was.LastAll())
		assert.Equal(t, st.Inline+st.Meta+st.Active+st.Sections+st.Searches, was.LastSent())
		assert.Equal(t, was.LastAll()-was.LastSent(), was.LastSaved())
		s.ActivateTools([]string{"mcp_a__tool_05", "mcp_a__tool_06"})
		time.Sleep(time.Second)
		synctest.Wait()
		now := d.plot()
		st = s.Stats().Tokens
		assert.Equal(t, st.Inline+st.Meta+st.Active+st.Sections+st.Searches, now.LastSent())
		assert.Greater(t, now.LastSent(), was.LastSent())
		assert.Contains(t, pageText(t, h, ""), strings.Join(strings.Fields(fmt.Sprintf("sent %s saved %s", count(now.LastSent()), count(now.LastSaved()))), " "))

		time.Sleep(100 * 24 * time.Hour)
		synctest.Wait()
		d.mu.Lock()
		samples := d.history.samples
		d.mu.Unlock()
		assert.Greater(t, len(samples), maxSamples/2-1)
		assert.LessOrEqual(t, len(samples), maxSamples)
		assert.True(t, samples[0].at.Equal(begun), "it reaches back to the first")
		for i, next := range samples[1:] {
			assert.Positive(t, next.at.Sub(samples[i].at))
		}
		assert.Less(t, time.Since(samples[len(samples)-1].at), 2*24*time.Hour)
		require.NoError(t, mgr.Close()) // what still ran would hang the test
		runtime.KeepAlive(s)
	})
}

// Areas are those of the numbers: each path begins at the upper left and ends at
// the lower left.
func TestDebugPlotIsDrawn(t *testing.T) {
	at := time.Unix(0, 0)
	d := &debugger{}
	d.history.samples = []sample{{at, 1, 100, 20}, {at.Add(time.Second), 1, 100, 50}, {at.Add(4 * time.Second), 1, 40, 60}}
	p := d.plot()
	assert.Equal(t, 100, p.Top)
	assert.Equal(t, "M0.0,160.0L250.0,100.0L1000.0,80.0L1000.0,200.0L250.0,200.0L0.0,200.0Z", p.Sent)
	assert.Equal(t, "M0.0,0.0L250.0,0.0L1000.0,80.0L1000.0,80.0L250.0,100.0L0.0,160.0Z", p.Saved)
	assert.Equal(t, 0, p.Share())
	d.history.samples = d.history.samples[:1]
	assert.Nil(t, d.plot())
	for n, want := range map[int]int{0: 0, 7: 7, 99: 99, 100: 100, 101: 110, 12_345: 13_000} {
		assert.Equal(t, want, roundUp(n), n)
	}
}

func BenchmarkDebugSample(b *testing.B) {
	mgr := NewManager(nil)
	b.Cleanup(func() { mgr.Close() })
	addMany(b, mgr, 10_000)
	d := mgr.DebugHandler().(*debugger)
	var sessions []*Session
	for range 10_000 {
		sessions = append(sessions, mgr.NewSession(nil))
	}
	for b.Loop() {
		d.sample()
	}
	runtime.KeepAlive(sessions)
}
