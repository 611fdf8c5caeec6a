package debug

import (
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
)

// The areas match the numbers: each path begins at the upper left and ends at
// the lower left.
func TestDebugPlotIsDrawn(t *testing.T) {
	at := time.Unix(0, 0)
	samples := []snapshot.Sample{{At: at, Sessions: 1, All: 100, Sent: 20}, {At: at.Add(time.Second), Sessions: 1, All: 100, Sent: 50}, {At: at.Add(4 * time.Second), Sessions: 1, All: 40, Sent: 60}}
	p := newPlot(samples)
	assert.Equal(t, 100, p.Top)
	assert.Equal(t, "M0.0,160.0L250.0,100.0L1000.0,80.0L1000.0,200.0L250.0,200.0L0.0,200.0Z", p.Sent)
	assert.Equal(t, "M0.0,0.0L250.0,0.0L1000.0,80.0L1000.0,80.0L250.0,100.0L0.0,160.0Z", p.Saved)
	assert.Equal(t, 0, p.Share())
	assert.Equal(t, 80, newPlot([]snapshot.Sample{samples[1], samples[0]}).Share())
	assert.Equal(t, 100, plot{Last: snapshot.Sample{All: 1}}.Share(), "one token is all")
	assert.Zero(t, plot{}.Share(), "there are no tokens")
	assert.Nil(t, newPlot(samples[:1]))
	assert.Nil(t, newPlot([]snapshot.Sample{{All: 40, Sent: 60}, {All: 40, Sent: 40}}), "nothing is saved")
	for n, want := range map[int]int{0: 0, 7: 7, 99: 99, 100: 100, 101: 110, 12_345: 13_000} {
		assert.Equal(t, want, roundUp(n), n)
	}
}
