package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// curious returns servers that ask, by how they are reached and with which protocol.
func curious(t *testing.T) map[string]ServerConfig {
	return map[string]ServerConfig{
		"in process":   {Name: "curious", InProcess: mcptest.Curious("curious")},
		"stdio":        child(t, "curious", "curious legacy"),
		"modern stdio": child(t, "curious", "curious"),
		"http":         {Name: "curious", URL: serveHTTP(t, mcptest.CuriousHTTP("curious", false), "127.0.0.1:0")},
		"modern http":  {Name: "curious", URL: serveHTTP(t, mcptest.CuriousHTTP("curious", true), "127.0.0.1:0")},
	}
}

// startCurious returns a Manager of one such server. Its hooks decline.
func startCurious(t *testing.T, cfg ServerConfig, change func(*Options)) *Manager {
	opts := Options{Servers: []ServerConfig{cfg}, Ask: ask.Options{Hooks: ask.Decline()}}
	if change != nil {
		change(&opts)
	}
	m := NewManager(&opts)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	require.NoError(t, m.Start(t.Context()))
	return m
}

// question returns the arguments of the tool that asks.
func question(kind, text string) map[string]any { return map[string]any{"kind": kind, "text": text} }

// chooses returns hooks that answer with color, and with name where a text is asked
// for.
func chooses(color, name string) ask.Hooks {
	return ask.Hooks{
		Elicit: func(_ context.Context, _ ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			if _, ok := p.RequestedSchema.(map[string]any); !ok && p.Mode == "" {
				return nil, fmt.Errorf("a schema of type %T", p.RequestedSchema)
			}
			return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"color": color}}}, nil
		},
		Sample: func(_ context.Context, from ask.Asker, p mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			if from != (ask.Asker{Server: "curious", Tool: "ask"}) || p.Messages[0].Content != any(mcp.NewTextContent("?")) {
				return nil, errors.New("wrong asker")
			}
			return &mcp.CreateMessageResult{SamplingMessage: mcp.SamplingMessage{Content: mcp.NewTextContent(name)}, Model: "m"}, nil
		},
		Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///home/" + name}}, nil
		},
	}
}

// SPEC G4: what a server asks reaches the hooks of the session whose call caused
// it, over every transport and protocol.
func TestSpecG4Questions(t *testing.T) {
	t.Parallel()
	for over, cfg := range curious(t) {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			m := startCurious(t, cfg, nil)
			s := m.NewSession(&SessionOptions{Hooks: chooses("blue", "ann")})
			for kind, want := range map[string]string{
				"elicit": `{"action":"accept","content":{"color":"blue"}}`,
				"sample": `{"role":"assistant","content":{"type":"text","text":"ann"},"model":"m"}`,
				"roots":  `{"roots":[{"uri":"file:///home/ann"}]}`,
			} {
				r, err := s.Call(t.Context(), "mcp_curious__ask", question(kind, "?"))
				require.NoError(t, err, kind)
				assert.JSONEq(t, want, resultText(t, r), kind)
			}
			r, err := s.Call(t.Context(), "mcp_curious__ask", question("page", "https://example.com/login"))
			require.NoError(t, err)
			assert.JSONEq(t, `{"action":"accept"}`, resultText(t, r))

			// Without hooks of its own, a session has those of the Manager.
			r, err = m.NewSession(nil).Call(t.Context(), "mcp_curious__ask", question("elicit", "?"))
			require.NoError(t, err)
			assert.JSONEq(t, `{"action":"decline"}`, resultText(t, r))
			r, err = s.NewChild(nil).Call(t.Context(), "mcp_curious__ask", question("roots", "?"))
			require.NoError(t, err)
			assert.Contains(t, resultText(t, r), "ann", "a child has the hooks of its parent")
			assert.NoError(t, check(m))
		})
	}
}

// SPEC G4: a server may refuse a call until the user has opened a page.
func TestSpecG4PagesFirst(t *testing.T) {
	t.Parallel()
	m := startCurious(t, curious(t)["stdio"], nil) // mcp-go's server can't with the newest protocol
	var pages []string
	s := m.NewSession(&SessionOptions{Hooks: ask.Hooks{Elicit: func(_ context.Context, _ ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
		pages = append(pages, p.Mode+" "+p.URL)
		return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept}}, nil
	}}})
	const page = "https://example.com/login"
	r, err := s.Call(t.Context(), "mcp_curious__ask", question("first", page))
	require.NoError(t, err)
	assert.Equal(t, "opened", resultText(t, r))
	_, err = s.Call(t.Context(), "mcp_curious__ask", question("always", page))
	assert.ErrorAs(t, err, new(mcp.URLElicitationRequiredError))
	assert.Equal(t, []string{"url " + page, "url " + page}, pages, "asked once for each call")

	_, err = m.Call(t.Context(), "mcp_curious__ask", question("always", page))
	assert.ErrorAs(t, err, new(mcp.URLElicitationRequiredError), "it was declined")
}

// SPEC G4: a tool that is executed as a task only is called like any other.
func TestSpecG4Tasks(t *testing.T) {
	t.Parallel()
	for over, cfg := range curious(t) {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			without := func(o *Options) { o.Ask = ask.Options{} }
			m := startCurious(t, cfg, without)
			switch over {
			case "in process", "modern stdio", "modern http": // the newest protocol has no tasks
				assert.ErrorContains(t, errors.Join(m.Problems()...), `server "curious": tool 1: it is executed as a task only`)
				_, err := m.Call(t.Context(), "mcp_curious__report", nil)
				assert.ErrorIs(t, err, ErrUnknownTool)
				return
			}
			r, err := m.Call(t.Context(), "mcp_curious__report", map[string]any{"text": "x"})
			require.NoError(t, err)
			assert.Equal(t, "report x", resultText(t, r))
			if over == "stdio" { // a handler in this process would never end
				cfg.CallTimeout = 500 * time.Millisecond
				_, err = startCurious(t, cfg, without).Call(t.Context(), "mcp_curious__report", map[string]any{"text": "never"})
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
	}
}

// SPEC G4: while many sessions call one server, nobody answers for another. Where
// the protocol does not tell whose a question is, it is declined.
func TestSpecG4EachAnswersItsOwn(t *testing.T) {
	t.Parallel()
	for over, cfg := range curious(t) {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			m := startCurious(t, cfg, func(o *Options) {
				o.Limits.CallTimeout, o.Ask.MaxAtOnce, o.Ask.MaxPerCall = time.Minute, NoLimit, NoLimit
			})
			const sessions, calls = 8, 10
			var answered, declined [sessions]int
			var asked [sessions]atomic.Int64
			var wg sync.WaitGroup
			for i := range sessions {
				name := fmt.Sprintf("name-%d", i)
				s := m.NewSession(&SessionOptions{Hooks: ask.Hooks{Elicit: func(_ context.Context, _ ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
					asked[i].Add(1)
					if p.Message != name {
						t.Errorf("%s is asked for %s", name, p.Message)
					}
					return chooses("red", "").Elicit(nil, ask.Asker{}, p)
				}}})
				wg.Go(func() {
					defer s.Close()
					for range calls {
						r, err := s.Call(t.Context(), "mcp_curious__ask", question("elicit", name))
						if !assert.NoError(t, err) {
							return
						}
						switch resultText(t, r) {
						case `{"action":"accept","content":{"color":"red"}}`:
							answered[i]++
						case `{"action":"decline"}`:
							declined[i]++
						}
					}
				})
			}
			wg.Wait()
			for i := range sessions {
				assert.Equal(t, calls, answered[i]+declined[i])
				assert.EqualValues(t, answered[i], asked[i].Load())
				if over != "stdio" && over != "http" {
					assert.Zero(t, declined[i])
				}
			}
			assert.NoError(t, check(m))
		})
	}
}

// SPEC G4: what concerns a user is asked that user and nobody else.
func TestSpecG4Users(t *testing.T) {
	t.Parallel()
	alarm := func(who string) ask.Hooks {
		return ask.Hooks{Roots: func(_ context.Context, from ask.Asker) ([]mcp.Root, error) {
			t.Errorf("%s is asked for %q", who, from.User)
			return nil, nil
		}}
	}
	m := startCurious(t, ServerConfig{Name: "shared", InProcess: mcptest.Curious("shared")}, func(o *Options) { o.Ask.Hooks = alarm("the system") })
	user := func(id string, h ask.Hooks) *User {
		u, err := m.NewUser(id, &UserOptions{Hooks: h, Servers: []ServerConfig{{Name: "own", InProcess: mcptest.Curious("own")}}})
		require.NoError(t, err)
		require.NoError(t, u.Start(t.Context()))
		return u
	}
	roots := func(s *Session, tool string) string {
		r, err := s.Call(t.Context(), tool, question("roots", ""))
		if err != nil {
			return err.Error()
		}
		return resultText(t, r)
	}
	// Bob has no hooks: nobody answers for him, and his server is told so.
	bob := user("bob", ask.Hooks{}).Default()
	assert.Equal(t, `{"roots":[]}`, roots(bob, "mcp_shared__ask"))
	assert.Contains(t, roots(bob, "mcp_own__ask"), "no roots handler")

	ann := user("ann", ask.Hooks{Roots: func(_ context.Context, from ask.Asker) ([]mcp.Root, error) {
		return []mcp.Root{{URI: "file:///", Name: from.User + " " + from.Server + " " + from.Tool}}, nil
	}}).Default()
	assert.Equal(t, `{"roots":[{"uri":"file:///","name":"ann shared ask"}]}`, roots(ann, "mcp_shared__ask"))
	assert.Equal(t, `{"roots":[{"uri":"file:///","name":"ann own ask"}]}`, roots(ann, "mcp_own__ask"))
	own := m.NewSession(&SessionOptions{Hooks: chooses("", "me")})
	assert.Contains(t, roots(own, "mcp_shared__ask"), "me")
}

// SPEC G4: a call waits for its person longer than for its server, and no longer than it may.
func TestSpecG4PersonTakesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, personTakesTime)
}

func personTakesTime(t *testing.T) {
	cfg := ServerConfig{Name: "curious", InProcess: mcptest.Curious("curious"), CallTimeout: time.Second}
	m := startCurious(t, cfg, func(o *Options) { o.Ask.Timeout = time.Hour })
	slow := func(wait time.Duration) (string, error) {
		s := m.NewSession(&SessionOptions{Hooks: ask.Hooks{Elicit: func(ctx context.Context, a ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			select {
			case <-time.After(wait):
				return chooses("red", "").Elicit(ctx, a, p)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}})
		defer s.Close()
		r, err := s.Call(t.Context(), "mcp_curious__ask", question("elicit", "?"))
		if err != nil {
			return "", err
		}
		return resultText(t, r), nil
	}
	got, err := slow(59 * time.Minute)
	require.NoError(t, err)
	assert.Equal(t, `{"action":"accept","content":{"color":"red"}}`, got)
	got, err = slow(61 * time.Minute)
	require.NoError(t, err)
	assert.Equal(t, `{"action":"cancel"}`, got)

	// Closing the session ends the question, and not the call.
	asked := make(chan struct{})
	s := m.NewSession(&SessionOptions{Hooks: ask.Hooks{Elicit: func(ctx context.Context, _ ask.Asker, _ mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}}})
	go func() { <-asked; s.Close() }()
	r, err := s.Call(t.Context(), "mcp_curious__ask", question("elicit", ""))
	require.NoError(t, err)
	assert.Equal(t, `{"action":"cancel"}`, resultText(t, r))
}
