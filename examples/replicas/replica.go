package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/stores/natsstore"
	"github.com/nats-io/nats.go"
)

// A conversation is what the store keeps of one: the host's part and the library's, in
// one document, so that they can't differ.
type conversation struct {
	Messages []message       `json:"messages"`
	Sent     string          `json:"sent"` // sections and definitions that the model got last
	Session  json.RawMessage `json:"session,omitempty"`
}

type message struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
	By       string `json:"by"` // the replica that answered; models don't answer the same twice either
}

// errLost says that a conversation is not what it must be.
var errLost = errors.New("lost")

// maxStore is how long one request to the store may take, and maxAway how long a turn asks again
// while the store is away.
const (
	maxStore = 2 * time.Second
	maxAway  = 5 * time.Second
)

// leaseTime is how long nobody answers a conversation whose replica died.
const leaseTime = 2 * time.Second

// An engine keeps what replicas share.
type engine interface {
	Sessions() store.Sessions
	Leases() store.Leases
	Document(name string) store.Watched
	Parts() store.Parts
}

// openNATS returns the engine of a NATS server.
func openNATS(ctx context.Context, nc *nats.Conn) (engine, error) {
	return natsstore.Open(ctx, nc, &natsstore.Options{LeaseTime: leaseTime})
}

// A replica answers turns. It keeps nothing of a conversation between them.
type replica struct {
	name     string
	mgr      *mcphybrid.Manager
	sessions store.Sessions
	leases   store.Leases
}

// newReplica returns a replica that follows, until ctx ends, what others store. version is
// Options.StateVersion: 0, or while an upgrade runs, the one that replicas of the release before read.
func newReplica(ctx context.Context, name string, engine engine, desk mcphybrid.ServerConfig, version int) (*replica, error) {
	cache, trust := engine.Document("cache"), engine.Document("trust")
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Inline: mcphybrid.InlineOptions{Max: 10}, Servers: []mcphybrid.ServerConfig{desk},
		Cache: cache, TrustStore: trust, StateParts: engine.Parts(), Usage: &mcphybrid.UsageOptions{Store: engine.Document("usage")},
		StateVersion: version,
	})
	if err := mgr.Start(ctx); err != nil {
		mgr.Close()
		return nil, err
	}
	follow := func(d store.Watched, refresh func() error) {
		_ = d.Watch(ctx, func() {
			if err := refresh(); err != nil {
				log.Print(err)
			}
		})
	}
	go follow(cache, mgr.Refresh)
	go follow(trust, mgr.Refresh)
	return &replica{name, mgr, engine.Sessions(), engine.Leases()}, nil
}

// answer answers message n of a conversation, from 0, or returns the answer that any replica
// has stored before: the client may ask again if it got none, and several replicas at once. One
// of them calls the tool, since only who has the lease of a conversation answers.
func (r *replica) answer(ctx context.Context, id string, n int, question string) (message, error) {
	ctx, release, err := r.leases.Lease(ctx, id)
	if err != nil {
		return message{}, err
	}
	defer release()
	c, revision, err := r.load(ctx, id)
	if err != nil {
		return message{}, err
	}
	switch {
	case n > len(c.Messages), n < len(c.Messages) && c.Messages[n].Question != question:
		return message{}, fmt.Errorf("%w: %q is not message %d of %q", errLost, question, n, id)
	case n < len(c.Messages):
		return c.Messages[n], nil
	}
	if err := r.advance(ctx, c, question); err != nil {
		return message{}, err
	}
	return c.Messages[n], r.put(ctx, id, c, revision) // an error, store.ErrConflict too, has the client ask again
}

func (r *replica) load(ctx context.Context, id string) (c *conversation, revision uint64, err error) {
	var state []byte
	err = r.ask(ctx, func(ctx context.Context) (err error) {
		state, revision, err = r.sessions.Get(ctx, id)
		return err
	})
	c = new(conversation)
	if errors.Is(err, store.ErrNotFound) {
		return c, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(state, c)
	}
	return c, revision, err
}

func (r *replica) put(ctx context.Context, id string, c *conversation, revision uint64) error {
	state, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return r.ask(ctx, func(ctx context.Context) error {
		_, err := r.sessions.Put(ctx, id, state, revision)
		return err
	})
}

// ask asks the store, and again while it is away.
func (r *replica) ask(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxAway)
	defer cancel()
	return store.Retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, maxStore)
		defer cancel()
		return do(ctx)
	})
}

// advance answers one question, as a model would: it searches, and calls what it finds.
func (r *replica) advance(ctx context.Context, c *conversation, question string) (err error) {
	var sess *mcphybrid.Session
	if c.Session == nil {
		sess = r.mgr.NewSession(nil)
	} else if sess, _, err = r.mgr.RestoreSession(c.Session, nil); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	defer sess.Close()
	sess.NextTurn()
	job, _, _ := strings.Cut(question, " ")
	if _, err := sess.Call(ctx, mcphybrid.SearchToolName, map[string]any{"query": "select:mcp_desk__" + job}); err != nil {
		return err
	}
	result, err := sess.Call(ctx, "mcp_desk__"+job, map[string]any{"text": question})
	if err != nil {
		return err
	}
	c.Messages = append(c.Messages, message{question, mcp.GetTextFromContent(result.Content[0]), r.name})

	sent := sess.PromptSections(mcphybrid.PromptFull)
	for _, t := range sess.Tools() {
		sent += fmt.Sprintf("\n%s %s %s", t.Name(), t.Description(), t.InputSchema())
	}
	if !strings.HasPrefix(sent, c.Sent) {
		return fmt.Errorf("%w: what the model was sent has changed", errLost)
	}
	c.Sent, c.Session = sent, sess.Save()
	return nil
}
