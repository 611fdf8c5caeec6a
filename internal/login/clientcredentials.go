package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A client that signs in as itself has no user, no page and no refresh token (RFC 6749,
// 4.4, and the extension of MCP for it). When its token has expired or is refused, it asks
// the server again where tokens are, and asks for another there.

// SignsInItself reports whether the client signs in as itself, so that nobody logs in.
func (a *Account) SignsInItself() bool { return a.cfg.grantType() == config.ClientCredentials }

// grantType returns how tokens are got; "" if a user logs in.
func (s *Config) grantType() string {
	if s.GrantType == "authorization_code" {
		return ""
	}
	return s.GrantType
}

// issue returns a header that is newer than the refused one: from memory, from the store or
// with a new token. If nothing was refused, and there never was a token, it is "".
// ctx bounds only the wait for the turn.
func (a *Account) issue(ctx context.Context, refused *Refusal) (header string, err error) {
	end, err := a.begin(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	ctx, cancel := context.WithTimeout(a.life, 2*requestTimeout)
	defer cancel()
	sent := ""
	if refused != nil {
		sent = refused.Header
	}
	a.mu.Lock()
	known := a.record
	a.mu.Unlock()
	if !known.usable(sent) {
		if known, err = a.stored(ctx); err != nil {
			return "", err
		}
	}
	if known.usable(sent) || refused == nil && known.AccessToken == "" {
		a.keep(known)
		return known.header(), nil
	}
	if refused != nil && refused.Scopes != nil {
		if err := known.want(refused.Scopes); err != nil {
			return "", err
		}
	}
	return a.another(ctx, known, sent)
}

// askAnew asks for a token, whatever there is.
func (a *Account) askAnew(ctx context.Context) error {
	end, err := a.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeout(a.life, 2*requestTimeout)
	defer cancel()
	known, err := a.stored(ctx)
	if err != nil {
		return err
	}
	a.pace = pace{}
	_, err = a.another(ctx, known, known.header())
	return err
}

// another asks for a token that is not the refused one, unless another process has got
// one meanwhile, and returns the header with it. The caller has the turn.
func (a *Account) another(ctx context.Context, known record, refused string) (header string, err error) {
	if err := a.pace.begin(); err != nil {
		return "", err
	}
	r, err := a.prepare(ctx, known)
	asked := false
	if err == nil {
		err = a.cfg.Store.Update(ctx, a.cfg.Key, func(document []byte) ([]byte, error) {
			if stored, err := a.parse(document); err == nil && stored.usable(refused) {
				r = stored
				return document, nil
			}
			var err error
			if r, err = a.granted(ctx, r); err != nil {
				return nil, err
			}
			asked = true
			r.follows(known)
			return r.document(nil)
		})
	}
	a.pace.end(r.AccessToken != "" && refused == "", err)
	if err != nil && r.AccessToken == "" {
		return "", text.Bounded(err)
	}
	a.keepOver(r, known, err)
	if asked {
		a.keepMade(r)
	}
	return r.header(), nil
}

// prepare returns a record without a token, for which one is to be asked, after known. The
// proof of the client may go to its token endpoint.
func (a *Account) prepare(ctx context.Context, known record) (record, error) {
	if a.cfg.trust() == "" { // else one would be registered, as for a user
		return record{}, errNoCredentials
	}
	found, err := a.discover(ctx)
	if err != nil {
		return record{}, text.WithoutURL(err)
	}
	found.scopes = a.harmless(a.asks(&known, found.scopes))
	r, err := a.client(ctx, found, known, "")
	if err == nil && r.TokenURL == "" {
		err = errors.New("the metadata of the authorization server name no token endpoint")
	}
	if err == nil {
		err = a.noteUse(ctx, &r)
	}
	return r, err
}

var errNoCredentials = fmt.Errorf("OAuth.GrantType is %s: OAuth.ClientID is missing, or OAuth.ClientSecret and OAuth.PrivateKey are", config.ClientCredentials)

// granted returns r with a new token.
func (a *Account) granted(ctx context.Context, r record) (record, error) {
	p, err := a.proof(&r, true)
	if err != nil {
		return r, err
	}
	form := url.Values{"grant_type": {config.ClientCredentials}, "resource": {r.Resource}}
	if len(r.Scopes) > 0 {
		form.Set("scope", strings.Join(r.Scopes, " "))
	}
	body, err := a.post(ctx, r.TokenURL, &r, p, form)
	got := received{new(transport.Token)}
	if err == nil && json.Unmarshal(body, got.token) != nil {
		err = errors.New("the answer is not the JSON of a token")
	}
	if err == nil {
		got.token.RefreshToken = "" // RFC 6749, 4.4.3: there should be none
		r, err = got.in(r)
	}
	if err != nil {
		return record{}, fmt.Errorf("asking %q for a token of the client %q: %w", hostOf(r.TokenURL), text.Line(r.ClientID, maxSaid), err)
	}
	return r, nil
}

// A pace bounds requests for tokens: when some have failed, or got tokens that the server
// refused, there are pauses between them. They double up to a minute.
type pace struct {
	vain  int       // requests in a row that failed, or that a refused token has caused
	last  time.Time // when the last one began
	cause error     // why it failed, if it did
}

const (
	maxQuick = 3               // requests in vain without a pause
	maxPause = time.Minute     // between two requests
	calm     = 2 * time.Minute // after which earlier requests don't count
)

// begin notes that there is a request, unless it is too early.
func (p *pace) begin() error {
	since := time.Since(p.last)
	if since >= calm {
		p.vain = 0
	}
	if over := p.vain - maxQuick; over >= 0 {
		pause := min(time.Second<<min(over, 6), maxPause)
		if since < pause {
			return fmt.Errorf("the last %d tokens were asked for in vain, and the next one is not before %s: %w",
				p.vain, p.last.Add(pause).UTC().Format(time.RFC3339), cmp.Or(p.cause, errEachRefused))
		}
	}
	p.last = time.Now()
	return nil
}

var errEachRefused = errors.New("the server refuses each of them")

// end notes how the request ended. It is good if it got a token, and none was refused
// before.
func (p *pace) end(good bool, err error) {
	p.cause = err
	if p.vain++; good {
		p.vain = 0
	}
}
