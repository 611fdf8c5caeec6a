package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

func (a answer) String() string {
	said := "no"
	if a.err != nil {
		said = a.err.Error()
	} else if a.yes {
		said = "yes"
	}
	if a.wait > 0 {
		said += fmt.Sprintf(" after %v", a.wait)
	}
	return said
}

// When leases are renewed, lost and given back, by what their engines answer.
func TestGoldenLeases(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What an engine answers to who takes and renews a lease: when it is asked to renew it, how long the lease lasts, and how long it takes to give it back, within a minute.\n")
	const almost = time.Minute - time.Millisecond // no renewal is due then
	random := rand.New(rand.NewPCG(7, 7))
	for i := range 90 {
		d := []time.Duration{10 * time.Second, time.Second, 3333 * time.Millisecond}[i%3]
		wait := func() time.Duration { // but for the last it ends before the next is due
			return [...]time.Duration{0, 0, d / 7, d / 3, d * 6 / 7, time.Hour}[random.IntN(6)]
		}
		f := &fake{takes: []answer{{yes: true, wait: min(wait(), d*6/7)}}}
		for range 1 + random.IntN(6) {
			a := answer{yes: random.IntN(12) > 0, wait: wait()}
			if a.yes && random.IntN(3) == 0 {
				a = answer{err: errAway, wait: a.wait}
			}
			f.renews = append(f.renews, a)
		}
		fmt.Fprintf(&b, "\n%v: taken %v, renewed %v and so on\n", d, f.takes[0], f.renews)
		synctest.Test(t, func(t *testing.T) {
			f.began = time.Now()
			held, release, err := Hold(t.Context(), f, d)
			require.NoError(t, err)
			taken := time.Since(f.began)
			said := "is held"
			select {
			case <-held.Done():
				said = context.Cause(held).Error()
			case <-time.After(almost - taken):
			}
			ended := time.Since(f.began)
			f.mu.Lock()
			asked, times := f.renewed, len(f.renewed)
			f.mu.Unlock()
			if len(asked) > 12 {
				asked = asked[:12]
			}
			begun := time.Now()
			release()
			fmt.Fprintf(&b, "  taken after %v, renewed at %v of %d times, %s after %v, freed %d times within %v, %v\n", taken, asked, times, said, ended, f.freed, time.Since(begun), held.Err())
			time.Sleep(time.Hour)
		})
	}
	golden.Compare(t, "leases.golden", b.String())
}

// A claim whose caller leaves while it gives back what it got too late.
type leaving struct {
	fake
	leave context.CancelFunc
}

func (l *leaving) Free(ctx context.Context) error {
	l.leave()
	return l.fake.Free(ctx)
}

// Who leaves between two attempts asks no more, and learns whether somebody else had the lease.
func TestLeavingBetweenAttempts(t *testing.T) {
	t.Parallel()
	late := answer{yes: true, wait: 9 * time.Second}
	for held, takes := range map[bool][]answer{false: {late}, true: {{}, late}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			l := &leaving{fake: fake{takes: takes, began: time.Now()}, leave: leave}
			n := len(takes)
			_, _, err := Hold(ctx, l, DefaultTime)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, held, IsHeld(err))
			require.Equal(t, n, l.taken)
		})
	}
}
