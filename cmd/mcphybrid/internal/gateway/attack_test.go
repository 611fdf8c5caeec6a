package gateway

//lint:file-ignore SA1019 what the protocol had before 2026-07-28 is served, too

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An attacker attacks a gateway, as a stranger or with the token. Attacks come at a pace
// that leaves the processor of this machine idle most of the time: what is measured is
// what the gateway does with them.
type attacker struct {
	address string // of the gateway
	url     string
	client  *http.Client
	bomb    string
	answers [6]atomic.Int64 // by the first digit of the status; 0 if there was none

	mu   sync.Mutex
	open []net.Conn // the newest that it holds
}

// The attacks, and how many of each there are in a second.
var attacks = map[string]struct {
	pace int
	run  func(a *attacker, n int)
}{
	"strangers": {300, func(a *attacker, n int) {
		a.hold("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	}},
	"strangers without a header": {50, func(a *attacker, n int) { a.hold("POST /mc") }},
	"slow bodies": {50, func(a *attacker, n int) {
		a.hold("POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	}},
	"sessions": {500, func(a *attacker, n int) { a.send(context.Background(), http.MethodPost, ping, "") }},
	"huge names": {2, func(a *attacker, n int) {
		a.send(context.Background(), http.MethodPost, strings.Replace(ping, `"test"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1), "")
	}},
	"bombs": {1, func(a *attacker, n int) { a.send(context.Background(), http.MethodPost, a.bomb, "") }},
	"small bombs": {20, func(a *attacker, n int) {
		a.send(context.Background(), http.MethodPost, `{"params":{"arguments":[`+strings.Repeat("[],", limits.SmallMessage/4)+`[]]}}`, "")
	}},
	"depth": {5, func(a *attacker, n int) {
		a.send(context.Background(), http.MethodPost, strings.Repeat("[", limits.SmallMessage), "")
	}},
	"foreign sessions": {50, func(a *attacker, n int) {
		method := []string{http.MethodGet, http.MethodPost, http.MethodDelete}[n%3]
		a.send(context.Background(), method, pong, fmt.Sprintf("foreign-%d", n))
	}},
	"disconnects": {20, func(a *attacker, n int) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(n%20)*time.Millisecond)
		defer cancel()
		a.send(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_kitchen__a_hang"}}`, "")
	}},
}

// hold opens a connection, sends the beginning of a request and sends no more.
func (a *attacker) hold(begin string) {
	c, err := net.DialTimeout("tcp", a.address, time.Second)
	if err != nil {
		a.answers[0].Add(1)
		return
	}
	_, _ = io.WriteString(c, begin)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open = append(a.open, c); len(a.open) > 2000 {
		a.open[0].Close()
		a.open = a.open[1:]
	}
}

func (a *attacker) send(ctx context.Context, method, message, session string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, a.url, nil)
	if err != nil {
		panic(err)
	}
	if method == http.MethodPost {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(message)), int64(len(message))
	}
	r.Header.Set("Authorization", "Bearer right")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set(server.HeaderKeySessionID, session)
	}
	resp, err := a.client.Do(r)
	if err != nil {
		a.answers[0].Add(1)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	a.answers[resp.StatusCode/100].Add(1)
}

// attack attacks until ctx ends.
func (a *attacker) attack(ctx context.Context) {
	var wg sync.WaitGroup
	second := time.Second
	if mcptest.Race() { // it slows down what serves an attack
		second *= 8
	}
	for _, kind := range attacks {
		wg.Go(func() {
			pace := time.NewTicker(second / time.Duration(kind.pace))
			defer pace.Stop()
			for n := 0; ; n++ {
				select {
				case <-pace.C:
					kind.run(a, n)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Wait()
}

// memory returns how many bytes of memory a process has had at most.
func memory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found)
	kilobytes := 0
	_, err = fmt.Sscan(rest, &kilobytes)
	require.NoError(t, err)
	return kilobytes << 10
}

func median[T int | float64 | time.Duration](list []T) T {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// The memory that a gateway with the default limits stays below, whatever clients send:
// the race detector takes several times as much.
const maxMemory = 256 << 20

// A client's calls take at most twice as long while a gateway, which may open 256 files, is
// attacked. Times with and without attacks take turns, so that whatever else this machine
// does slows both.
func TestAttacks(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("memory can't be read here: ", err)
	}
	t.Setenv(tokens.Variable, "right")
	cmd, url := startProcessWith(t, "ulimit -n 256", "-config", writeConfig(t, "kitchen"))
	victim, _ := connect(t, overHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer right"})), "victim", generations["legacy"]...)
	a := &attacker{
		url: url, address: strings.TrimSuffix(strings.TrimPrefix(url, "http://"), web.Endpoint),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}},
		bomb:   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_kitchen__a_arguments","arguments":{"x":[` + strings.Repeat("[],", 5<<20) + `[]]}}}`,
	}
	defer func() {
		a.client.CloseIdleConnections()
		for _, c := range a.open {
			c.Close()
		}
	}()
	const window = 500 * time.Millisecond
	calls := 0
	times := func() time.Duration {
		var took []time.Duration
		for until := time.Now().Add(window); time.Now().Before(until); calls++ {
			begun := time.Now()
			result, err := call(within(t), victim, "mcp_kitchen__dish_01", map[string]any{"text": "x"})
			require.NoError(t, err)
			require.Equal(t, "cooked x", textOf(result))
			took = append(took, time.Since(begun))
		}
		return median(took)
	}
	times() // all is warm
	slower := func(rounds int) float64 {
		var ratios []float64
		for range rounds {
			quiet := times()
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { a.attack(ctx) })
			attacked := times()
			stop()
			wg.Wait()
			ratios = append(ratios, float64(attacked)/float64(quiet))
		}
		t.Logf("calls take %.2f times as long (%.2f); the gateway had %d MB at most", median(ratios), ratios, memory(t, cmd.Process.Pid)>>20)
		return median(ratios)
	}
	rounds := mcptest.Long(40, 6)
	ratio := slower(rounds)
	for again := 0; again < 4 && ratio > 2; again++ { // the machine may have been busy with something else
		ratio = slower(rounds)
	}
	t.Logf("%d calls; attacks without an answer: %d, with status 2xx: %d, 4xx: %d, 5xx: %d", calls, a.answers[0].Load(), a.answers[2].Load(), a.answers[4].Load(), a.answers[5].Load())
	assert.LessOrEqual(t, ratio, 2.0)
	if !mcptest.Race() {
		assert.Less(t, memory(t, cmd.Process.Pid), maxMemory)
	}
}
