package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
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
	Sections string          `json:"sections"` // of the prompt, as they were sent last
	Tools    string          `json:"tools"`    // as they were sent last
	Session  json.RawMessage `json:"session,omitempty"`
}

type message struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
	By       int    `json:"by"` // the process that answered; models don't answer the same twice either
}

// A turn is a request: the question is message Number of the conversation, from 0.
type turn struct {
	Conversation string `json:"conversation"`
	Number       int    `json:"number"`
	Question     string `json:"question"`
}

// A reply is the answer to a turn.
type reply struct {
	message
	Own     time.Duration `json:"own"`     // what the turn took, without the tools that it called
	Retries int           `json:"retries"` // how often another replica was faster
}

// maxStore is how long a turn waits for the store.
const maxStore = 2 * time.Second

// A replica answers turns. It keeps nothing of a conversation between them.
type replica struct {
	mgr      *mcphybrid.Manager
	sessions store.Sessions
}

// runReplica answers turns over HTTP until its input ends. It prints its address.
func runReplica(storeURL, deskURL string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	nc, err := nats.Connect(storeURL, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		return err
	}
	defer nc.Close()
	engine, err := opened(nc)
	if err != nil {
		return err
	}
	cache, trust := engine.Document("cache"), engine.Document("trust")
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Inline: mcphybrid.InlineOptions{Max: 10}, Cache: cache, TrustStore: trust, StateParts: engine.Parts(), Usage: &mcphybrid.UsageOptions{Store: engine.Document("usage")},
		Servers: []mcphybrid.ServerConfig{{Name: "desk", URL: deskURL}},
	})
	defer mgr.Close()
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	go follow(ctx, cache, mgr.RefreshCache)
	go follow(ctx, trust, mgr.RefreshTrust)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r := &replica{mgr, engine.Sessions()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /turn", r.serveTurn)
	mux.HandleFunc("GET /conversation", r.serveConversation)
	web := &http.Server{Handler: mux}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		web.Close()
	}()
	fmt.Printf("http://%s\n", l.Addr())
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// opened opens the store. A replica may start while that is away.
func opened(nc *nats.Conn) (*natsstore.Store, error) {
	for until := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(context.Background(), maxStore)
		engine, err := natsstore.Open(ctx, nc, nil)
		cancel()
		if err == nil || time.Now().After(until) {
			return engine, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// follow keeps the Manager in step with what other replicas store.
func follow(ctx context.Context, d store.Watched, refresh func() error) {
	_ = d.Watch(ctx, func() {
		if err := refresh(); err != nil {
			log.Print(err)
		}
	})
}

func (r *replica) serveTurn(w http.ResponseWriter, req *http.Request) {
	var t turn
	if err := json.NewDecoder(io.LimitReader(req.Body, 1<<20)).Decode(&t); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	got, err := r.answer(req.Context(), t)
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	_ = json.NewEncoder(w).Encode(got)
}

// errLost says that a conversation is not what it must be.
var errLost = errors.New("lost")

// statusOf returns 409 for what must never happen, and 503 for what another try may mend.
func statusOf(err error) int {
	if errors.Is(err, errLost) {
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

func (r *replica) serveConversation(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), maxStore)
	defer cancel()
	state, _, err := r.sessions.Get(ctx, req.FormValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write(state)
}

// answer answers a turn, or returns the answer that any replica has stored before: the
// client may ask again if it got none, and several replicas at once.
func (r *replica) answer(ctx context.Context, t turn) (*reply, error) {
	begun := time.Now()
	var called time.Duration
	for retries := 0; ; retries++ {
		c, revision, err := r.load(ctx, t.Conversation)
		if err != nil {
			return nil, err
		}
		switch n := len(c.Messages); {
		case t.Number > n:
			return nil, fmt.Errorf("%w: message %d of %q, which has %d", errLost, t.Number, t.Conversation, n)
		case t.Number < n && c.Messages[t.Number].Question != t.Question:
			return nil, fmt.Errorf("%w: %q is not message %d of %q", errLost, t.Question, t.Number, t.Conversation)
		case t.Number < n:
			return &reply{c.Messages[t.Number], time.Since(begun) - called, retries}, nil
		}
		took, err := r.advance(ctx, c, t.Question)
		called += took
		if err != nil {
			return nil, err
		}
		if err = r.put(ctx, t.Conversation, c, revision); err == nil {
			return &reply{c.Messages[t.Number], time.Since(begun) - called, retries}, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return nil, err
		}
	}
}

func (r *replica) load(ctx context.Context, id string) (*conversation, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, maxStore)
	defer cancel()
	c := new(conversation)
	state, revision, err := r.sessions.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return c, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(state, c)
	}
	return c, revision, err
}

func (r *replica) put(ctx context.Context, id string, c *conversation, revision uint64) error {
	ctx, cancel := context.WithTimeout(ctx, maxStore)
	defer cancel()
	state, err := json.Marshal(c)
	if err == nil {
		_, err = r.sessions.Put(ctx, id, state, revision)
	}
	return err
}

// advance answers one question, as a model would: it searches, and calls what it finds.
// It returns how long that call took.
func (r *replica) advance(ctx context.Context, c *conversation, question string) (called time.Duration, err error) {
	var sess *mcphybrid.Session
	if c.Session == nil {
		sess = r.mgr.NewSession(nil)
	} else if sess, _, err = r.mgr.RestoreSession(c.Session, nil); err != nil {
		return 0, fmt.Errorf("%w: %w", errLost, err)
	}
	defer sess.Close()
	sess.NextTurn()
	job, _, _ := strings.Cut(question, " ")
	if _, err := sess.Call(ctx, mcphybrid.SearchToolName, map[string]any{"query": "select:mcp_desk__" + job}); err != nil {
		return 0, err
	}
	begun := time.Now()
	result, err := sess.Call(ctx, "mcp_desk__"+job, map[string]any{"text": question})
	called = time.Since(begun)
	if err != nil {
		return called, err
	}
	c.Messages = append(c.Messages, message{question, mcp.GetTextFromContent(result.Content[0]), os.Getpid()})

	sections, tools := sess.PromptSections(mcphybrid.PromptFull), sent(sess)
	if !strings.HasPrefix(sections, c.Sections) || !strings.HasPrefix(tools, c.Tools) {
		return called, fmt.Errorf("%w: what the model was sent has changed", errLost)
	}
	c.Sections, c.Tools, c.Session = sections, tools, sess.Save()
	return called, nil
}

// sent returns the definitions of a session's tools.
func sent(sess *mcphybrid.Session) string {
	var b strings.Builder
	for _, t := range sess.Tools() {
		fmt.Fprintf(&b, "%s %s %s\n", t.Name(), cmp.Or(t.Description(), "-"), t.InputSchema())
	}
	return b.String()
}
