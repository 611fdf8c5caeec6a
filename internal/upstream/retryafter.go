package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// maxWait is how long a server can ask us to wait. It may ask for longer.
const maxWait = 10 * time.Minute

// A busyError says that a server refuses requests for a while: with HTTP status
// 429, or with 503 and a Retry-After header.
type busyError struct {
	status int
	wait   time.Duration // that the server asks for, at most maxWait; 0 if it does not say
}

func (e *busyError) Error() string {
	line := fmt.Sprintf("the server limits the rate of requests (HTTP status %d)", e.status)
	if e.status == http.StatusServiceUnavailable {
		line = fmt.Sprintf("the server is not available (HTTP status %d)", e.status)
	}
	if e.wait > 0 {
		line += fmt.Sprintf("; it asks to wait %v", e.wait)
	}
	return line
}

// busyFrom returns the busyError that resp tells of, or nil.
func busyFrom(resp *http.Response) *busyError {
	wait := retryAfter(resp.Header, time.Now())
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable && wait > 0 {
		return &busyError{resp.StatusCode, wait}
	}
	return nil
}

// retryAfter returns how long the Retry-After header asks to wait, at most
// maxWait, or 0. The header has a number of seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxWait/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxWait).Round(time.Second)
	}
	return 0
}

// waitOf returns how long the server asks to wait, or 0 if err tells nothing of
// it.
func waitOf(err error) time.Duration {
	if busy := new(busyError); errors.As(err, &busy) {
		return busy.wait
	}
	return 0
}
