package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// What is found out about the authorization server of a resource.
type discovery struct {
	metadata *transport.AuthServerMetadata
	resource string   // never empty
	scopes   []string // to ask for
	promises bool     // the authorization server names itself in its answers

	documents bool // it reads what a client publishes of itself
	guessed   bool // nothing names it: it may not be there
}

// offlineAccess is the scope for which servers that go by OpenID grant refresh tokens. A
// login that asks for scopes asks for it too, where the authorization server names it.
const offlineAccess = "offline_access"

// discover asks the server where to log in, unless the settings say so. A client that
// signs in as itself has nobody to look at a page, so it takes no guess for an answer.
func (a *Account) discover(ctx context.Context) (d discovery, err error) {
	a.mu.Lock()
	challenges := slices.Clone(a.challenges)
	a.mu.Unlock()
	itself := a.SignsInItself()
	configured := a.cfg.TokenURL != "" && (a.cfg.AuthorizationURL != "" || itself && a.cfg.MetadataURL == "")
	if len(challenges) == 0 && !configured {
		challenges = a.challenged(ctx)
	}
	d.scopes = scopesIn(challenges)
	if configured {
		d.metadata = &transport.AuthServerMetadata{AuthorizationEndpoint: a.cfg.AuthorizationURL, TokenEndpoint: a.cfg.TokenURL}
		d.resource = cmp.Or(a.cfg.Resource, plain(a.cfg.URL))
		return d, nil
	}
	base := plain(a.cfg.URL)
	h, c, err := a.ask(ctx, base, challenges)
	if err != nil {
		// The server may advertise metadata that name another resource than its
		// address. What stands at the usual place may name one above it.
		h2, c2, err2 := a.ask(ctx, base, nil)
		if err2 != nil || !c2.described {
			return d, fmt.Errorf("finding the authorization server: %w", text.WithoutURL(err))
		}
		h, c = h2, c2
	}
	if host := origin(base); a.cfg.MetadataURL == "" && !c.described && c.found == nil && strings.TrimSuffix(base, "/") != host {
		// The server has no metadata of its own. Its host may have some.
		h2, c2, err2 := a.ask(ctx, host, nil)
		c2.foreign = cmp.Or(c.foreign, c2.foreign)
		switch {
		case ctx.Err() != nil:
			return d, context.Cause(ctx)
		case err2 == nil:
			h, c = h2, c2
		default:
			c.foreign = c2.foreign
		}
	}
	if c.foreign != nil && c.found == nil {
		return d, fmt.Errorf("finding the authorization server: %w", c.foreign)
	}
	d.promises, d.documents = c.promises, c.documents
	d.guessed = c.found == nil && !c.described && a.cfg.MetadataURL == ""
	if d.metadata, err = h.GetServerMetadata(ctx); err != nil { // it has them
		return d, err
	}
	if c.found != nil && !reflect.DeepEqual(d.metadata, c.found) {
		return d, errUnreadable
	}
	if itself && c.found == nil && a.cfg.MetadataURL == "" {
		return d, errors.New("finding the authorization server: nothing names one: set OAuth.TokenURL or OAuth.MetadataURL")
	}
	if methods := d.metadata.CodeChallengeMethodsSupported; !itself && len(methods) > 0 && !slices.Contains(methods, "S256") {
		return d, errors.New("the authorization server does not support PKCE with S256")
	}
	page, err := h.GetAuthorizationURL(ctx, "", "")
	if err != nil {
		return d, err
	}
	if u, err := url.Parse(page); err == nil {
		d.resource = u.Query().Get("resource")
	}
	d.resource = cmp.Or(a.cfg.Resource, d.resource, base)
	if d.scopes == nil {
		d.scopes = c.scopes
	}
	if !itself && len(d.scopes) > 0 && slices.Contains(d.metadata.ScopesSupported, offlineAccess) {
		d.scopes = union(d.scopes, []string{offlineAccess})
	}
	return d, nil
}

// errUnreadable says that there are metadata, and mcp-go took a guess in their place.
var errUnreadable = errors.New("the metadata of the authorization server can't be read: a member has a wrong type, or an address is none")

// challenged asks the server without a token, as nothing has been refused so far, and
// returns how it refuses that.
func (a *Account) challenged(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.cfg.URL, nil)
	if err != nil {
		return nil
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := a.web.RoundTrip(r)
	if err != nil {
		return nil // the next request tells
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return nil
	}
	return bounded(resp.Header.Values("WWW-Authenticate"))
}

// ask returns a handler that has the metadata of the authorization server of the
// resource at base, with these challenges of the server. If the transport saw none, they
// are a guess.
func (a *Account) ask(ctx context.Context, base string, challenges []string) (*transport.OAuthHandler, *oauthTransport, error) {
	c := a.transport()
	h, err := a.askBy(ctx, c, base, challenges)
	return h, c, err
}

// askBy does that by c.
func (a *Account) askBy(ctx context.Context, c *oauthTransport, base string, challenges []string) (*transport.OAuthHandler, error) {
	h := transport.NewOAuthHandler(transport.OAuthConfig{HTTPClient: c.client(), AuthServerMetadataURL: a.cfg.MetadataURL})
	h.SetBaseURL(base)
	h.HandleUnauthorizedResponse(&http.Response{Header: http.Header{"Www-Authenticate": challenges}})
	_, err := h.GetServerMetadata(ctx)
	return h, err
}
