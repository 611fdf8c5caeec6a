package upstream

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
)

var errLate = context.DeadlineExceeded

// calls makes calls with these outcomes, one after the other, and returns the last refusal.
func (c *circuit) calls(outcomes ...error) (refused error) {
	for _, err := range outcomes {
		p, refusal := c.enter()
		if refused = refusal; refusal == nil {
			c.leave(context.Background(), p, err)
		}
	}
	return refused
}

func opened(c *circuit) bool { return c.reason != nil }

// A server that answers none of so many calls in a row gets none for a while. Each pause is
// twice as long, up to eight times the first. An answer ends them.
func TestCircuitPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit(config.Limits{MaxTimeouts: 3, CallTimeout: time.Second})
		c.calls(errLate, errLate)
		assert.False(t, opened(&c))
		c.calls(nil, errLate, errLate)
		assert.False(t, opened(&c), "one was answered in between")
		c.calls(errLate)
		assert.True(t, opened(&c))
		begun := time.Now()
		for _, pause := range []time.Duration{1, 2, 4, 8, 8} {
			err := c.calls(nil)
			assert.ErrorIs(t, err, ErrDown)
			assert.ErrorContains(t, err, "it has not answered the last ")
			time.Sleep(pause*time.Second - 1)
			assert.Error(t, c.calls(nil))
			time.Sleep(time.Nanosecond)
			p, err := c.enter()
			assert.NoError(t, err, pause)
			assert.Error(t, c.calls(nil), "only one at once")
			c.leave(t.Context(), p, errLate)
		}
		st := c.status(Status{State: Ready})
		assert.Equal(t, Degraded, st.State)
		assert.Equal(t, begun, st.Since, "it is one time")
		assert.Equal(t, time.Now().Add(8*time.Second), st.Retry)
		assert.ErrorContains(t, st.Err, "it has not answered the last 8 calls")
		assert.Equal(t, Down, c.status(Status{State: Down}).State)
		time.Sleep(8 * time.Second)
		assert.NoError(t, c.calls(errors.New("an answer too")))
		assert.False(t, opened(&c))
		assert.Equal(t, Status{State: Ready}, c.status(Status{State: Ready}))
		c.calls(errLate, errLate, errLate)
		time.Sleep(time.Second)
		assert.NoError(t, c.calls(nil), "the first pause again")
	})
}

// What tells nothing of the server neither opens nor closes a circuit.
func TestCircuitWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit(config.Limits{MaxTimeouts: 2, CallTimeout: time.Second})
		c.calls(errLate, ErrDown, barredError{errors.New("barred")}, errLate)
		assert.True(t, opened(&c))
		time.Sleep(time.Second)
		c.calls(ErrDown)
		assert.True(t, opened(&c))
		assert.NoError(t, c.calls(nil), "it lets the next one through at once")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 {
			p, err := c.enter()
			assert.NoError(t, err)
			c.leave(ended, p, errLate)
		}
		assert.False(t, opened(&c), "its caller gave up")
		c = newCircuit(config.Limits{CallTimeout: time.Second})
		c.calls(errLate, errLate, errLate)
		assert.False(t, opened(&c), "there is no limit")
	})
}

// Calls that began before the last answer say nothing.
func TestCircuitOfEarlierCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit(config.Limits{MaxTimeouts: 2, CallTimeout: time.Second})
		var early []passage
		for range 3 {
			p, err := c.enter()
			assert.NoError(t, err)
			early = append(early, p)
		}
		time.Sleep(time.Second)
		c.calls(nil)
		for _, p := range early {
			c.leave(t.Context(), p, errLate)
		}
		assert.False(t, opened(&c))
		c.calls(errLate, errLate)
		assert.True(t, opened(&c))
		c.close()
		assert.False(t, opened(&c), "a new connection")
	})
}

// A server that asks to wait is waited for as long as it asks, whatever else happens.
func TestCircuitOfABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit(config.Limits{MaxTimeouts: 1, CallTimeout: time.Hour})
		p, err := c.enter()
		assert.NoError(t, err)
		q, err := c.enter()
		assert.NoError(t, err)
		c.calls(&busyError{http.StatusTooManyRequests, 10 * time.Second})
		c.leave(t.Context(), p, nil) // sent before
		c.leave(t.Context(), q, &busyError{http.StatusTooManyRequests, 5 * time.Second})
		c.close()
		time.Sleep(10*time.Second - 1)
		err = c.calls(nil)
		assert.EqualError(t, err, "the server is down: the server limits the rate of requests (HTTP status 429); it asks to wait 10s; a call is tried again at 2000-01-01T00:00:10Z")
		time.Sleep(time.Nanosecond)
		assert.NoError(t, c.calls(&busyError{http.StatusServiceUnavailable, 20 * time.Second}))
		assert.ErrorContains(t, c.calls(nil), "the server is not available (HTTP status 503); it asks to wait 20s")
		time.Sleep(20 * time.Second)
		c.close()
		assert.False(t, opened(&c))
		c.calls(&busyError{http.StatusTooManyRequests, 0})
		assert.False(t, opened(&c), "it does not say how long")
	})
}

// A server that asks to wait answers: a pause for want of answers is over, and the next one is
// the first again.
func TestCircuitOfASilentServerThatIsBusyThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit(config.Limits{MaxTimeouts: 1, CallTimeout: time.Second})
		c.calls(errLate)
		time.Sleep(time.Second)
		c.calls(errLate)
		time.Sleep(2 * time.Second)
		c.calls(&busyError{http.StatusTooManyRequests, 5 * time.Second})
		assert.Equal(t, time.Now(), c.status(Status{State: Ready}).Since)
		time.Sleep(5 * time.Second)
		c.calls(errLate)
		assert.Equal(t, time.Now().Add(2*time.Second), c.status(Status{State: Ready}).Retry, "the second since it answered")
		assert.ErrorContains(t, c.calls(nil), "it has not answered the last 1 calls")
	})
}

// A server that asks for a short wait answers, also when a longer pause for want of answers has begun.
func TestCircuitIsOpenedByBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit(config.Limits{MaxTimeouts: 1, CallTimeout: time.Minute})
		early, err := c.enter()
		assert.NoError(t, err)
		c.calls(errLate)
		assert.Equal(t, time.Now().Add(time.Minute), c.status(Status{State: Ready}).Retry)
		c.leave(t.Context(), early, &busyError{http.StatusTooManyRequests, 5 * time.Second})
		assert.Equal(t, time.Now().Add(5*time.Second), c.status(Status{State: Ready}).Retry)
	})
}

// How long a server can ask us to wait: in seconds or by a date, ten minutes at most.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "0": 0, "-1": 0, "1.5": 0, "soon": 0, "599": 599 * time.Second, "600": 10 * time.Minute, "601": 10 * time.Minute, "18446744073709551615": 10 * time.Minute,
		"Sat, 28 Nov 2026 12:00:07 GMT": 7 * time.Second, "Sat, 28 Nov 2026 11:00:00 GMT": 0, "Sat, 28 Nov 2026 13:00:00 GMT": 10 * time.Minute,
	} {
		assert.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}, now), value)
	}
	for _, test := range []struct {
		status int
		after  string
		want   *busyError
	}{{429, "", &busyError{429, 0}}, {429, "5", &busyError{429, 5 * time.Second}}, {503, "", nil}, {503, "5", &busyError{503, 5 * time.Second}}, {500, "5", nil}, {200, "5", nil}} {
		assert.Equal(t, test.want, busyFrom(&http.Response{StatusCode: test.status, Header: http.Header{"Retry-After": {test.after}}}))
	}
	assert.EqualError(t, &busyError{429, 0}, "the server limits the rate of requests (HTTP status 429)")
}

// An error is about what was asked for, unless it says that by itself.
func TestAbout(t *testing.T) {
	t.Parallel()
	err := errors.New("broken")
	assert.EqualError(t, About(err, "tool", "a\nb", "s"), `mcphybrid: tool "a b" of server "s": broken`)
	assert.ErrorIs(t, About(err, "tool", "a", "s"), err)
	assert.Same(t, err, About(barredError{err}, "tool", "a", "s"))
}

// A command's own arguments, a token before a host and parts of a path that look random are
// secrets; names and words are none.
func TestSecretsOfAConfiguration(t *testing.T) {
	t.Parallel()
	s := newSecrets(&config.Server{
		Command: "run --api-key=first-key", HeadersHelper: "print --token second-key", URL: "https://ghp-0a1b2c3d4e5f6a7b8c9d@h/ab12cd34ef56ab78cd90/plainword",
		OAuth: &config.OAuth{ClientSecret: "third-key", PrivateKey: "-----BEGIN PRIVATE KEY-----\nfifth+key\nsixth/key\n-----END PRIVATE KEY-----\n"}, Headers: map[string]string{"Plain": "Bearer fourth-key"},
	}, nil)
	for _, secret := range []string{"first-key", "second-key", "third-key", "fourth-key", "fifth+key", "sixth/key", "ghp-0a1b2c3d4e5f6a7b8c9d", "ab12cd34ef56ab78cd90"} {
		assert.True(t, s.in("x "+secret+" y"), secret)
	}
	for _, plain := range []string{"run", "print", "plainword", "https", "Bearer"} {
		assert.False(t, s.in(plain), plain)
	}
	assert.False(t, newSecrets(&config.Server{Command: "api-key=first-key"}, nil).in("first-key"), "a program has that name")
}
