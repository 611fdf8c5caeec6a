// Package login signs in to an MCP server by OAuth 2.1, keeps the tokens, and
// refreshes them. Discovery, registration and the requests for tokens are mcp-go's;
// this package decides when they happen, bounds them, and sees to it that nobody
// spends a refresh token twice.
package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/store"
)

// A Config describes one account: a user of one server.
type Config struct {
	config.OAuth
	URL   string // of the server
	Key   string // of the account in Store
	Store store.Tokens
	HTTP  http.RoundTripper // for requests to the authorization server; an *http.Transport is the account's own
	Log   *slog.Logger
}

// An Account has the tokens of a user of one server. Its methods are safe for
// concurrent use.
type Account struct {
	cfg Config
	web *reach // instead of cfg.HTTP

	// Hold, if not nil, is told of each secret before it is used.
	Hold func(name string, values []string)

	// Hides, if not nil, reports whether text has a secret of the server's
	// configuration, or one that Hold was told of.
	Hides func(text string) bool

	life context.Context // of all requests for tokens
	end  context.CancelFunc
	busy sync.WaitGroup // users of turn, and logins

	logins    context.Context // of all logins
	endLogins context.CancelFunc

	turn chan struct{} // has room for the one who changes the record

	mu         sync.Mutex
	closed     bool
	looked     bool     // in the store
	record     record   // the current one
	unsaved    *record  // what the store has, if the current record could not be saved, or nil
	told       string   // the last failure of the store that was logged since one succeeded
	made       string   // the header with the last token that the account got itself, but by a login
	challenges []string // of the last answer with status 401
	unnamed    bool     // see [Account.NamesNone]

	pace pace // of requests for tokens by the client itself; used by who has the turn
}

const (
	// requestTimeout bounds each request to an authorization server.
	requestTimeout = 30 * time.Second

	// closeGrace is how long Close waits for an answer that may have a new refresh
	// token: without it, the user would have to log in again.
	closeGrace = 2 * time.Second
)

// New returns an account. It reads the store when it is used first.
func New(cfg Config) *Account {
	a := &Account{cfg: cfg, web: newReach(&cfg), turn: make(chan struct{}, 1)}
	a.life, a.end = context.WithCancel(context.Background())
	a.logins, a.endLogins = context.WithCancel(a.life)
	return a
}

// Close ends logins and requests for tokens. It waits for the host's store, but not for long if
// package guard guards it.
func (a *Account) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.endLogins()
	t := time.AfterFunc(closeGrace, a.end)
	a.busy.Wait()
	t.Stop()
	a.end()
	a.web.close()
}

var errClosed = errors.New("the account is closed")

// enter makes Close wait until busy.Done is called, unless the account is closed.
func (a *Account) enter() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errClosed
	}
	a.busy.Add(1)
	return nil
}

// begin waits for the turn to change the record. Call the function that it returns
// at the end.
func (a *Account) begin(ctx context.Context) (end func(), err error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	select {
	case a.turn <- struct{}{}:
		return func() { <-a.turn; a.busy.Done() }, nil
	case <-ctx.Done():
		a.busy.Done()
		return nil, ctx.Err()
	}
}

// A Refusal says that a server answered a request with status 401, or with 403 for
// want of scopes.
type Refusal struct {
	Header     string   // the Authorization header of the request, or ""
	Challenges []string // the WWW-Authenticate headers of the answer
	Scopes     []string // that the request lacks: see [Lacking]; nil with status 401
	Again      bool     // another header of the same request was refused before
}

// Header returns the Authorization header of a request, or "" if the user has not
// logged in. refused, if not nil, is what the server has just said to the same
// request. Header refreshes a token that has expired or was refused, unless another process
// has done so. If scopes are
// lacking, it returns the same header, unless somebody has logged in since, and the
// next login asks for them; the error says that this was done in vain. A client that
// signs in as itself asks for a token then, also for one with these scopes.
func (a *Account) Header(ctx context.Context, refused *Refusal) (string, error) {
	sent := ""
	var lacking []string
	a.mu.Lock()
	if refused != nil {
		sent, lacking = refused.Header, refused.Scopes
	}
	if refused != nil && lacking == nil {
		a.challenges = bounded(refused.Challenges)
	}
	current, looked, made := a.record, a.looked, a.made
	a.mu.Unlock()
	if refused != nil && refused.Again && lacking == nil && sent == made {
		return sent, nil // it is new, so a newer one would not help
	}
	itself := a.SignsInItself()
	if current.usable(sent) || looked && refused == nil && current.RefreshToken == "" && !(itself && current.AccessToken != "") {
		return current.header(), nil
	}
	if itself {
		return hostcode.Detached(ctx, "the login", func() (string, error) { return a.issue(ctx, refused) })
	}
	// A caller that gives up must not end it: the answer may have the only refresh
	// token.
	return hostcode.Detached(ctx, "the login", func() (string, error) { return a.renew(ctx, sent, lacking) })
}

// renew returns a header that is newer than the refused header, from the store or
// from the authorization server. The store's lock makes other processes wait. ctx
// bounds only the wait for the turn. If there is none, and that header was refused for
// want of scopes, renew notes these in the store for the next login.
func (a *Account) renew(ctx context.Context, refused string, lacking []string) (header string, err error) {
	end, err := a.begin(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	ctx, cancel := context.WithTimeout(a.life, 2*requestTimeout)
	defer cancel()
	first, unread := a.firstUse(ctx, new(record)) // not in the change below: a store may have one lock
	var found, stored record
	ahead, refreshed := false, false // whether what is found is newer than what is stored
	err = a.cfg.Store.Update(ctx, a.cfg.Key, func(document []byte) ([]byte, error) {
		var err error
		if stored, err = a.parse(document); err != nil {
			return nil, err
		}
		found, ahead = a.newer(stored)
		switch {
		case found.usable(refused) && !ahead:
			return document, nil
		case found.usable(refused):
			return found.document(nil)
		case lacking != nil && stored.URL == "" && len(document) > 0: // it is of another client
			return document, nil
		case lacking != nil && found.header() == refused:
			if err := found.want(lacking); err != nil {
				return nil, err
			}
			found.URL, found.ClientID, found.Trust = a.cfg.URL, cmp.Or(found.ClientID, a.cfg.ClientID), a.cfg.trust()
			found.TokenURL = cmp.Or(found.TokenURL, a.cfg.TokenURL)
			return found.document(nil)
		case found.RefreshToken == "":
			found.AccessToken, ahead = "", true
			return found.document(document)
		case unread != nil:
			return nil, unread
		}
		ahead = false
		fresh, err := a.refresh(ctx, found, first)
		if err != nil {
			return nil, fmt.Errorf("refreshing the token: %w", err)
		}
		found, ahead, refreshed = fresh, true, fresh.AccessToken != ""
		return found.document(nil)
	})
	if err != nil && !ahead {
		return "", err
	}
	a.keepOver(found, stored, err)
	if refreshed {
		a.keepMade(found)
	}
	return found.header(), nil
}

// keepMade notes that the account has just got the token of r itself.
func (a *Account) keepMade(r record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made = r.header()
}

// newer returns the current record if it could not be saved and the store still has the one
// before it. Else it returns what is stored.
func (a *Account) newer(stored record) (r record, ahead bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved != nil && stored.AccessToken == a.unsaved.AccessToken && stored.RefreshToken == a.unsaved.RefreshToken {
		return a.record, true
	}
	return stored, false
}

// keep makes r the current record.
func (a *Account) keep(r record) { a.keepUntold(r, record{}, nil) }

// keepOver is keep for a record that was to replace what is stored. An err says that it could not
// be saved, which is logged once.
func (a *Account) keepOver(r, stored record, err error) {
	if a.keepUntold(r, stored, err) {
		a.cfg.Log.Error("mcphybrid: a login counts only until this program ends, since it can't be saved", "error", err)
	}
}

// keepUntold is keepOver without the log. It reports whether err is to be told.
func (a *Account) keepUntold(r, stored record, err error) (isNews bool) {
	a.hold("token", r.AccessToken, r.RefreshToken, r.ClientSecret)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record, a.looked, a.unsaved = r, true, nil
	if err == nil {
		a.told = ""
		return false
	}
	isNews = err.Error() != a.told
	a.unsaved, a.told = &stored, err.Error()
	return isNews
}

func (a *Account) hold(name string, values ...string) {
	values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	if a.Hold != nil && len(values) > 0 {
		a.Hold(name, values)
	}
}
