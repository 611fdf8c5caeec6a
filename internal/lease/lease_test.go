package lease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A fake engine has one lease.
type fake struct {
	takes, renews []answer // each once; the last for ever
	taken, freed  int
	asked         []time.Duration // when it was to be taken, since the test began
	freeing       []time.Duration // when it was to be freed
	unfreed       int             // how often Free fails first
	renewed       []time.Duration // since the test began
	began         time.Time

	mu sync.Mutex
}

type answer struct {
	yes  bool
	err  error
	wait time.Duration
}

func (f *fake) next(list *[]answer, ctx context.Context) (bool, error) {
	f.mu.Lock()
	a := (*list)[0]
	if len(*list) > 1 {
		*list = (*list)[1:]
	}
	f.mu.Unlock()
	select {
	case <-time.After(a.wait):
		return a.yes, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (f *fake) Take(ctx context.Context) (bool, error) {
	f.mu.Lock()
	f.taken++
	f.asked = append(f.asked, time.Since(f.began))
	f.mu.Unlock()
	return f.next(&f.takes, ctx)
}

func (f *fake) Renew(ctx context.Context) (bool, error) {
	f.mu.Lock()
	f.renewed = append(f.renewed, time.Since(f.began))
	f.mu.Unlock()
	return f.next(&f.renews, ctx)
}

func (f *fake) Free(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.freeing = append(f.freeing, time.Since(f.began))
	if f.unfreed > 0 {
		f.unfreed--
		return errAway
	}
	f.freed++
	return nil
}

var errAway = errors.New("away")

// A lease that can't be given back, since its engine is away, is given back when that is there
// again, and nobody waits for it for long. When it has expired, that ends.
func TestFreedLater(t *testing.T) {
	for fails, freed := range map[int]int{5: 1, 1_000_000: 0} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{takes: []answer{{yes: true}}, renews: []answer{{yes: true}}, began: time.Now(), unfreed: fails}
			_, release, err := Hold(t.Context(), f, DefaultTime)
			require.NoError(t, err)
			begun := time.Now()
			release()
			assert.LessOrEqual(t, time.Since(begun), freeTime)
			time.Sleep(DefaultTime)
			synctest.Wait()
			assert.Equal(t, freed, f.freed)
			left := f.unfreed
			time.Sleep(time.Hour)
			assert.Equal(t, left, f.unfreed)
		})
	}
}

func TestHold(t *testing.T) {
	yes := answer{yes: true}
	for name, test := range map[string]struct {
		takes, renews []answer
		lost          time.Duration // when; 0 for never within an hour
		taken         int
	}{
		"kept":                           {[]answer{yes}, []answer{yes}, 0, 1},
		"after others":                   {[]answer{{}, {}, yes}, []answer{yes}, 0, 3},
		"another's meanwhile":            {[]answer{yes}, []answer{yes, {}}, 5 * time.Second, 1},
		"away":                           {[]answer{yes}, []answer{{err: errAway}}, 9 * time.Second, 1},
		"away for a while":               {[]answer{yes}, []answer{{err: errAway}, {err: errAway}, yes}, 0, 1},
		"silent":                         {[]answer{yes}, []answer{{yes: true, wait: time.Hour}}, 9 * time.Second, 1},
		"silent once":                    {[]answer{yes}, []answer{{yes: true, wait: time.Hour}, yes}, 0, 1},
		"slow":                           {[]answer{yes}, []answer{{yes: true, wait: 4 * time.Second}}, 0, 1},
		"taken so late that it is over":  {[]answer{{yes: true, wait: 9 * time.Second}, yes}, []answer{yes}, 0, 2},
		"renewed when it would have end": {[]answer{{yes: true, wait: 8 * time.Second}}, []answer{yes}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{takes: test.takes, renews: test.renews, began: time.Now()}
				held, release, err := Hold(t.Context(), f, DefaultTime)
				require.NoError(t, err)
				require.Equal(t, test.taken, f.taken)
				select {
				case <-held.Done():
					assert.Equal(t, test.lost, time.Since(f.began))
					assert.ErrorIs(t, context.Cause(held), store.ErrLeaseLost)
				case <-time.After(time.Hour):
					assert.Zero(t, test.lost)
					assert.NoError(t, held.Err())
				}
				freed := f.freed
				late := 0
				if test.takes[0].wait >= usable(DefaultTime) {
					late = 1
				}
				assert.Equal(t, late, freed, "what was taken too late is given back")
				release()
				release()
				assert.Equal(t, freed+1, f.freed)
				assert.Error(t, held.Err())
			})
		})
	}
}

// Who waits in vain gets no lease, and learns whether somebody else had it or the engine was silent.
func TestHoldInVain(t *testing.T) {
	for name, test := range map[string]struct {
		takes  []answer
		within time.Duration
		held   bool
	}{
		"held all the time":              {[]answer{{}}, 3 * DefaultTime, true},
		"held, and no answer at the end": {[]answer{{}, {wait: time.Hour}}, DefaultTime / 2, true},
		"held, and then silent":          {[]answer{{}, {wait: time.Hour}}, 3 * DefaultTime, false},
		"silent":                         {[]answer{{wait: time.Hour}}, DefaultTime / 2, false},
		"answers come too late":          {[]answer{{yes: true, wait: 9500 * time.Millisecond}}, 3 * DefaultTime, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{takes: test.takes, renews: []answer{{yes: true}}, began: time.Now()}
				ctx, cancel := context.WithTimeout(t.Context(), test.within)
				defer cancel()
				held, _, err := Hold(ctx, f, DefaultTime)
				assert.Error(t, err)
				assert.Nil(t, held)
				assert.Equal(t, test.held, IsHeld(err), err)
				time.Sleep(time.Hour)
			})
		})
	}
}

// What may have been taken is given back.
func TestHoldFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: []answer{{err: errAway}}}
		_, _, err := Hold(t.Context(), f, DefaultTime)
		require.ErrorIs(t, err, errAway)
		assert.Equal(t, 1, f.freed)

		f = &fake{takes: []answer{{}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err = Hold(ctx, f, DefaultTime)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.InDelta(t, time.Minute/mostWait, f.taken, 240, "it asks about as often as it may")
	})
}

// A deaf claim heeds no context.
type deaf struct {
	fake
	wait time.Duration // for each answer
}

func (d *deaf) Take(context.Context) (bool, error) { return d.fake.Take(context.Background()) }

func (d *deaf) Renew(context.Context) (bool, error) {
	time.Sleep(d.wait)
	return true, nil
}

func (d *deaf) Free(context.Context) error {
	time.Sleep(d.wait)
	return d.fake.Free(context.Background())
}

// A lease is over in time, and nobody waits long, while a claim heeds no context.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{fake: fake{takes: []answer{{yes: true}}}, wait: time.Minute}
		began := time.Now()
		held, release, err := Hold(t.Context(), d, DefaultTime)
		require.NoError(t, err)
		<-held.Done()
		assert.Equal(t, 9*time.Second, time.Since(began))
		assert.ErrorIs(t, context.Cause(held), store.ErrLeaseLost)
		release()
		assert.Equal(t, 10*time.Second, time.Since(began))
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, d.freed)

		for limit, want := range map[time.Duration]time.Duration{time.Second: 2 * time.Second, time.Hour: 11 * time.Second} {
			d = &deaf{fake: fake{takes: []answer{{yes: true, wait: time.Minute}}}}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			began = time.Now()
			_, _, err = Hold(ctx, d, DefaultTime)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, want, time.Since(began))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			assert.Equal(t, 1, d.freed)
			cancel()
		}
	})
}

// Who looks at a lease that is over sees that, whether or not a timer has run.
func TestLook(t *testing.T) {
	inner, end := context.WithCancelCause(t.Context())
	h := &holding{Context: inner, end: end, until: time.Now().Add(time.Hour)}
	derived, cancel := context.WithCancel(h)
	defer cancel()
	require.NoError(t, h.Err())
	h.renew(time.Now())
	require.ErrorIs(t, h.Err(), context.Canceled)
	assert.ErrorIs(t, context.Cause(derived), store.ErrLeaseLost)
}

// Of many that wait for a lease, one asks the engine, and nothing is left of them.
func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queues
		f := &fake{takes: []answer{{}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, _, err := q.Hold(ctx, "x", f, DefaultTime)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		all.Wait()
		assert.InDelta(t, time.Minute/mostWait, f.taken, 240+100)
		assert.Empty(t, q.byID)

		f = &fake{takes: []answer{{yes: true}}, renews: []answer{{yes: true}}}
		_, first, err := q.Hold(t.Context(), "x", f, DefaultTime)
		require.NoError(t, err)
		_, second, err := q.Hold(t.Context(), "x", f, DefaultTime)
		require.NoError(t, err, "who holds it waits no more")
		assert.Empty(t, q.byID)
		first()
		second()

		f = &fake{takes: []answer{{err: errAway, wait: time.Second}}}
		began := time.Now()
		for range 100 {
			all.Go(func() {
				_, _, err := q.Hold(t.Context(), "x", f, DefaultTime)
				assert.ErrorIs(t, err, errAway)
			})
		}
		all.Wait()
		assert.Less(t, time.Since(began), 3*time.Second, "all are told at once")
		assert.Empty(t, q.byID)
	})
}

// Attempts to take a lease, and to give one back, are at growing intervals, up to a quarter of a
// second, each of which is up to half shorter by chance.
func TestIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		grow := func(name string, at []time.Duration) {
			require.Greater(t, len(at), 12, name)
			for i, wait := 0, 10*time.Millisecond; i+1 < len(at); i, wait = i+1, min(2*wait, 250*time.Millisecond) {
				between := at[i+1] - at[i]
				assert.GreaterOrEqual(t, between, wait/2, "%s %d", name, i)
				assert.Less(t, between, wait, "%s %d", name, i)
			}
		}
		f := &fake{takes: append(make([]answer, 20), answer{yes: true}), renews: []answer{{yes: true}}, began: time.Now(), unfreed: 20}
		_, release, err := Hold(t.Context(), f, DefaultTime)
		require.NoError(t, err)
		grow("taking", f.asked)
		release()
		time.Sleep(DefaultTime)
		synctest.Wait()
		grow("freeing", f.freeing)
		assert.Equal(t, 1, f.freed)
	})
}

// A lease is renewed at a quarter of its time, and sooner where that fails. One that was renewed lasts
// from then on, also where the next renewal hangs and heeds no context.
func TestRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		yes, away := answer{yes: true}, answer{err: errAway}
		f := &fake{takes: []answer{yes}, renews: []answer{yes, away, away, yes}, began: time.Now()}
		_, release, err := Hold(t.Context(), f, DefaultTime)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		release()
		synctest.Wait()
		const ms = time.Millisecond
		assert.Equal(t, []time.Duration{2500 * ms, 5000 * ms, 5500 * ms, 6000 * ms, 8500 * ms}, f.renewed)
	})
	synctest.Test(t, func(t *testing.T) {
		d := &hanging{fake: fake{takes: []answer{{yes: true}}}}
		begun := time.Now()
		held, release, err := Hold(t.Context(), d, DefaultTime)
		require.NoError(t, err)
		<-held.Done()
		assert.Equal(t, 2500*time.Millisecond+9*time.Second, time.Since(begun))
		assert.ErrorIs(t, context.Cause(held), store.ErrLeaseLost)
		release()
		time.Sleep(2 * time.Hour)
	})
}

// A hanging claim renews once, and then heeds nothing.
type hanging struct {
	fake
	renewals int
}

func (h *hanging) Renew(context.Context) (bool, error) {
	if h.renewals++; h.renewals > 1 {
		time.Sleep(time.Hour)
	}
	return true, nil
}

// Of those who wait, each gets its turn. One that gives up takes nobody along, and where the engine
// fails all who wait do, each with the reason.
func TestTurnsInQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q Queues
		f := &fake{takes: append(make([]answer, 50), answer{yes: true}), renews: []answer{{yes: true}}, began: time.Now()}
		impatient, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		var all sync.WaitGroup
		all.Go(func() {
			_, _, err := q.Hold(impatient, "x", f, DefaultTime)
			assert.True(t, IsHeld(err), err)
		})
		synctest.Wait()
		for range 3 {
			all.Go(func() {
				_, release, err := q.Hold(t.Context(), "x", f, DefaultTime)
				if assert.NoError(t, err) {
					release()
				}
			})
		}
		all.Wait()
		assert.Equal(t, 3, f.freed)

		f = &fake{takes: []answer{{err: errAway, wait: time.Second}}, began: time.Now()}
		for range 3 {
			all.Go(func() {
				_, _, err := q.Hold(t.Context(), "x", f, DefaultTime)
				assert.ErrorIs(t, err, errAway)
			})
		}
		all.Wait()
		assert.Equal(t, 1, f.taken)
		assert.Empty(t, q.byID)
	})
}

func TestLeaseTimes(t *testing.T) {
	t.Parallel()
	assert.NoError(t, Check(time.Second))
	assert.EqualError(t, Check(time.Second-1), "LeaseTime is 999.999999ms, below 1s")
}
