package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

// settings say what play plays.
type settings struct {
	server        string // the URL of a PostgreSQL server, or "" for a NATS server that is a child
	replicas      int
	conversations int
	think         time.Duration // between an answer and the next question
	away          time.Duration // how long the store is away
	time          time.Duration // how long to go on killing; each dies at least once
	pause         time.Duration // between kills

	programs []program                          // of the replicas, or nil if this one
	disturb  func(context.Context, *cast) error // what happens, if not (*cast).kill
}

// A cast is all that runs.
type cast struct {
	settings
	note   func(format string, args ...any)
	folder string // of the store
	desk   string // URL of the MCP server
	url    string // of the store

	mu       sync.Mutex
	replicas []*process
	store    *process

	next     atomic.Int64 // replica in turn
	over     atomic.Bool  // no turn begins any more
	answered atomic.Int64
	doubled  atomic.Int64   // of these, asked of two replicas at once
	calls    map[string]int // by question; guarded by mu
	again    atomic.Int64   // called more than once, for a message that was sent again after a failure
	kills    int
	outages  int
	back     atomic.Int64    // when the store came back last, in Unix nanoseconds
	after    []time.Duration // of turns that ended within afterwards of that: from then or their question to their answer; guarded by mu
}

// afterwards is how long after the store has come back turns are timed.
const afterwards = 30 * time.Second

// A report says how it went.
type report struct {
	conversations, turns, doubled, again, kills, outages int
	after                                                []time.Duration // ascending
}

func (r *report) String() string {
	if len(r.after) == 0 {
		return fmt.Sprintf("%d conversations, %d turns, %d of them asked of two replicas at once; %d tools called again after a failure; %d replicas replaced", r.conversations, r.turns, r.doubled, r.again, r.kills)
	}
	return fmt.Sprintf("%d conversations, %d turns, %d of them asked of two replicas at once; %d tools called again after a failure; %d replicas killed, and the store %d times. The %d turns within %v after its return took %v, one in a hundred more than %v, the last %v.",
		r.conversations, r.turns, r.doubled, r.again, r.kills, r.outages, len(r.after), afterwards, r.after[len(r.after)/2], r.after[len(r.after)*99/100], r.after[len(r.after)-1])
}

// play runs it all. note is told what happens.
func play(ctx context.Context, s settings, note func(string, ...any)) (_ *report, err error) {
	c := &cast{settings: s, note: note, calls: make(map[string]int)}
	if c.folder, err = os.MkdirTemp("", "replicas-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(c.folder)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web := &http.Server{Handler: mcpserver.NewStreamableHTTPServer(newDesk(c.called), mcpserver.WithStateful(true))}
	defer web.Close()
	go func() { _ = web.Serve(l) }()
	c.desk = fmt.Sprintf("http://%s/mcp", l.Addr())

	defer c.stop()
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var talking sync.WaitGroup
	told := make([][]message, s.conversations) // of each
	for i := range s.conversations {
		talking.Go(func() {
			var err error
			if told[i], err = c.talk(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	if s.disturb != nil {
		err = s.disturb(ctx, c)
	} else {
		err = c.kill(ctx)
	}
	c.over.Store(true)
	talking.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	for i, messages := range told {
		if err := c.check(ctx, i, messages); err != nil {
			return nil, err
		}
	}
	slices.Sort(c.after)
	return &report{s.conversations, int(c.answered.Load()), int(c.doubled.Load()), int(c.again.Load()), c.kills, c.outages, c.after}, nil
}

// start starts the store and the replicas.
func (c *cast) start(ctx context.Context) (err error) {
	if err := c.startStore("-1"); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return c.store.at() != "" }); err != nil {
		return fmt.Errorf("the store: %w", err)
	}
	c.url = c.store.at()
	c.replicas = make([]*process, c.settings.replicas)
	for i := range c.replicas {
		if err := c.revive(i); err != nil {
			return err
		}
	}
	return until(ctx, func() bool { return !slices.Contains(c.addresses(), "") })
}

// startStore starts the store, or the line to it. The port -1 is a free one.
func (c *cast) startStore(port string) (err error) {
	if c.server != "" {
		c.store, err = begin("as-line", c.server, strings.Replace(port, "-1", "0", 1))
	} else {
		c.store, err = begin("as-store", c.folder, port)
	}
	return err
}

// called counts the calls of tools.
func (c *cast) called(question string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[question]++
}

// once asserts that a tool was called once for a question. If an attempt to ask it failed, it was
// sent again, and the tool may have been called again.
func (c *cast) once(question string, failed bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.calls[question]
	delete(c.calls, question)
	switch {
	case n == 1:
		return nil
	case n > 1 && failed:
		c.again.Add(1)
		return nil
	}
	return fmt.Errorf("%q: the tool was called %d times", question, n)
}

// stop ends all processes.
func (c *cast) stop() {
	for _, p := range append(slices.Clone(c.replicas), c.store) {
		if p != nil {
			p.kill()
		}
	}
}

func (c *cast) revive(i int) error {
	begin := begin
	if c.programs != nil {
		begin = c.programs[i].begin
	}
	p, err := begin("as-replica", c.url, c.desk)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.replicas[i] = p
	c.mu.Unlock()
	return nil
}

// addresses returns the URLs of the replicas, "" of those that are away.
func (c *cast) addresses() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.replicas {
		list = append(list, p.at())
	}
	return list
}

// maxWait is how long anything may take that must happen in the end.
const maxWait = 2 * time.Minute

// until waits until condition holds.
func until(ctx context.Context, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for !condition() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// goesOn waits until as many turns were answered as there are conversations.
func (c *cast) goesOn(ctx context.Context) error {
	least := c.answered.Load() + int64(c.conversations)
	return until(ctx, func() bool { return c.answered.Load() >= least })
}

// kill kills each replica, and the store after every second round of these, while the
// conversations go on.
func (c *cast) kill(ctx context.Context) error {
	if err := c.goesOn(ctx); err != nil {
		return err
	}
	for begun, round := time.Now(), 0; round == 0 || time.Since(begun) < c.time; round++ {
		for i := range c.replicas {
			c.note("kill replica %d", i+1)
			if err := c.replace(ctx, i); err != nil {
				return err
			}
			if err := wait(ctx, c.pause); err != nil {
				return err
			}
		}
		if round%2 == 0 {
			if err := c.withoutStore(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace kills a replica and, once the others have gone on, starts it again.
func (c *cast) replace(ctx context.Context, i int) error {
	c.replicas[i].kill()
	c.kills++
	if err := c.goesOn(ctx); err != nil {
		return fmt.Errorf("without replica %d: %w", i+1, err)
	}
	if err := c.revive(i); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return c.addresses()[i] != "" }); err != nil {
		return fmt.Errorf("replica %d does not come back: %w", i+1, err)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withoutStore kills the store and brings it back, at the same address.
func (c *cast) withoutStore(ctx context.Context) error {
	at, err := url.Parse(c.url)
	if err != nil {
		return err
	}
	c.note("kill the store for %v", c.away)
	c.store.kill()
	if err := wait(ctx, c.away); err != nil {
		return err
	}
	if err := c.startStore(at.Port()); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return c.store.at() != "" }); err != nil {
		return fmt.Errorf("the store does not come back: %w", err)
	}
	begun := time.Now()
	c.outages++
	c.back.Store(begun.UnixNano())
	if err := c.goesOn(ctx); err != nil {
		return fmt.Errorf("after the store has come back: %w", err)
	}
	c.note("the store is back, and conversations go on after %v", time.Since(begun).Round(time.Millisecond))
	return nil
}

// timed notes how long a turn took that began then, if the store has come back lately.
func (c *cast) timed(begun time.Time) {
	now, back := time.Now(), time.Unix(0, c.back.Load())
	if now.Sub(back) > afterwards {
		return
	}
	if begun.Before(back) {
		begun = back
	}
	c.mu.Lock()
	c.after = append(c.after, now.Sub(begun))
	c.mu.Unlock()
}

func conversationID(i int) string { return fmt.Sprintf("user/%d", i) }

// question returns message n of conversation i. Each is asked once.
func question(i, n int) string { return fmt.Sprintf("job_%03d for %d.%d", (i*7+n)%jobs, i, n) }

// wanted returns the answer to a question.
func wanted(question string) string {
	job, _, _ := strings.Cut(question, " ")
	return job + " did: " + question
}

// talk asks the questions of one conversation, and returns what it was told. One in ten
// goes to two replicas at once, which must tell the same.
func (c *cast) talk(ctx context.Context, i int) (told []message, err error) {
	for n := 0; !c.over.Load(); n++ {
		times := 1
		if n%10 == 9 {
			times = 2
			c.doubled.Add(1)
		}
		errs, answers := make([]error, times), make([]message, times)
		var failed atomic.Bool
		begun := time.Now()
		var asking sync.WaitGroup
		for k := range times {
			asking.Go(func() { answers[k], errs[k] = c.ask(ctx, turn{conversationID(i), n, question(i, n)}, &failed) })
		}
		asking.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		if err := c.once(question(i, n), failed.Load()); err != nil {
			return nil, err
		}
		if answers[0] != answers[times-1] {
			return nil, fmt.Errorf("%q was answered twice", question(i, n))
		}
		told = append(told, answers[0])
		c.answered.Add(1)
		c.timed(begun)
		if err := wait(ctx, c.think); err != nil {
			return nil, err
		}
	}
	return told, nil
}

// ask asks one replica after the other until one answers, and notes whether one failed.
func (c *cast) ask(ctx context.Context, t turn, failed *atomic.Bool) (message, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return message{}, err
	}
	var got message
	var wrong error // that no other try mends
	err = until(ctx, func() bool {
		addresses := c.addresses()
		at := addresses[int(c.next.Add(1))%len(addresses)]
		if at == "" {
			return false
		}
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		status, data, err := send(ctx, http.MethodPost, at+"/turn", body)
		got = message{}
		switch {
		case err != nil || status == http.StatusServiceUnavailable:
			failed.Store(true)
			return false
		case status != http.StatusOK:
			wrong = fmt.Errorf("status %d: %s", status, data)
		case json.Unmarshal(data, &got) != nil:
			failed.Store(true) // it was killed while it answered
			return false
		case got.Question != t.Question || got.Answer != wanted(t.Question):
			wrong = fmt.Errorf("%q was answered %q", t.Question, got.Answer)
		}
		return true
	})
	return got, errors.Join(err, wrong)
}

func send(ctx context.Context, method, url string, body []byte) (status int, data []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	data, err = io.ReadAll(res.Body)
	return res.StatusCode, data, err
}

// check asserts that a conversation has what its client was told, in order.
func (c *cast) check(ctx context.Context, i int, told []message) error {
	status, data, err := send(ctx, http.MethodGet, c.addresses()[0]+"/conversation?id="+url.QueryEscape(conversationID(i)), nil)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("conversation %d: %d %s %w", i, status, data, err)
	}
	var stored conversation
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	if !slices.Equal(told, stored.Messages) {
		return fmt.Errorf("conversation %d has %d messages that are not the %d its client was told", i, len(stored.Messages), len(told))
	}
	return nil
}
