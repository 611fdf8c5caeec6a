package web

import (
	"cmp"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of connections with all standings and ages, which change again and again, the one that closes is the
// first by standing and then by age. One that works does not close.
func TestWhichConnectionCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dice := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			d := newDoor(nil, 1)
			type known struct {
				*visit
				standing standing
				since    time.Time
				dones    []func()
				befores  []standing
			}
			var all []*known
			for range 200 {
				time.Sleep(time.Second)
				switch k := dice.IntN(10); {
				case k < 2 || len(all) == 0:
					v := &visit{TCPConn: new(net.TCPConn), door: d, since: time.Now()}
					d.inner[v] = struct{}{}
					all = append(all, &known{visit: v, since: time.Now()})
				case k < 6:
					v := all[dice.IntN(len(all))]
					v.befores = append(v.befores, v.standing)
					v.standing, v.since = standing(dice.IntN(4)), time.Now()
					v.dones = append(v.dones, stand(withVisit(t.Context(), v.visit), v.standing))
				case k < 9:
					v := all[dice.IntN(len(all))]
					if last := len(v.dones) - 1; last >= 0 {
						v.dones[last]()
						v.standing, v.since = v.befores[last], time.Now()
						v.dones, v.befores = v.dones[:last], v.befores[:last]
					}
				default:
					slices.SortFunc(all, func(a, b *known) int { return cmp.Or(cmp.Compare(a.standing, b.standing), a.since.Compare(b.since)) })
					isOne := all[0].standing != working
					require.Equal(t, isOne, d.closeOne())
					if isOne {
						require.NotContains(t, d.inner, all[0].visit)
						all = all[1:]
					}
				}
				require.Equal(t, len(all), d.Count())
				require.Equal(t, len(all) >= 1, d.isFull())
			}
		}
	})
}

// One connection too many closes another: first one of a stranger, then the one that has
// waited longest, then one that listens, and never one that works.
func TestConnectionsHaveALimit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := newDoor(l.(*net.TCPListener), 3)
	defer d.Close()
	open := func() *visit {
		there, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { there.Close() })
		here, err := d.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { here.Close() })
		return here.(*visit)
	}
	isOpen := func(v *visit) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, ok := d.inner[v]
		return ok
	}
	as := func(v *visit, s standing) (done func()) { return stand(withVisit(t.Context(), v), s) }
	one, two, three := open(), open(), open()
	as(one, waiting)
	done := as(one, working)
	as(two, listening)
	four := open()
	assert.False(t, isOpen(three), "a stranger")
	as(four, waiting)
	five := open()
	assert.False(t, isOpen(four), "it has waited")
	as(five, working)
	six := open()
	assert.False(t, isOpen(two), "it has only listened")
	as(six, working)

	refused, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer refused.Close()
	accepted := make(chan net.Conn)
	go func() {
		c, err := d.Accept()
		assert.NoError(t, err)
		accepted <- c
	}()
	_ = refused.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = refused.Read(make([]byte, 1))
	assert.Error(t, err, "all others work")
	assert.True(t, isOpen(one))
	done()
	there, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer there.Close()
	defer (<-accepted).Close()
	assert.False(t, isOpen(one))
}
