package login

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// refresh gets new tokens for r. If the refresh token is good for nothing any more, or
// r names a token endpoint to which the secret may not go, the result has none.
func (a *Account) refresh(ctx context.Context, r record, first endpoints) (record, error) {
	a.hold("token", r.RefreshToken, r.ClientSecret)
	if r.Trust != "" {
		trusted, err := a.tokenEndpoint(ctx, first)
		if err != nil {
			return r, text.Bounded(err)
		}
		if trusted == "" || r.TokenURL != trusted {
			a.cfg.Log.Warn("mcphybrid: a login in the token store is not used: OAuth.ClientSecret does not go to its token endpoint", "endpoint", text.Line(r.TokenURL, maxSaid), "trusted", text.Line(trusted, maxSaid))
			r.AccessToken, r.RefreshToken = "", ""
			return r, nil
		}
	}
	h, got := a.handler(&r, "", nil)
	_, err := h.RefreshToken(ctx, r.RefreshToken)
	var refused transport.OAuthError
	if errors.As(err, &refused) {
		switch refused.ErrorCode {
		case "invalid_grant", "unauthorized_client":
			r.AccessToken, r.RefreshToken = "", ""
			return r, nil
		case "invalid_client": // it was removed
			return record{URL: r.URL}, nil
		}
	}
	if err != nil {
		return r, text.Bounded(text.WithoutURL(err))
	}
	return got.in(r)
}

// handler returns what asks the authorization server of r for tokens, and where it
// puts them. The secret of the settings may go there: see [Account.tokenEndpoint]. A
// client is registered for the scopes.
func (a *Account) handler(r *record, redirect string, scopes []string) (*transport.OAuthHandler, *received) {
	got := new(received)
	c := a.transport()
	c.resource, c.metadata = r.Resource, &transport.AuthServerMetadata{
		Issuer: r.Issuer, AuthorizationEndpoint: r.TokenURL, TokenEndpoint: r.TokenURL, RegistrationEndpoint: r.registration,
		TokenEndpointAuthMethodsSupported: r.AuthMethods,
	}
	return transport.NewOAuthHandler(transport.OAuthConfig{
		ClientID: r.ClientID, ClientSecret: a.secret(r, true), TokenEndpointAuthMethod: r.AuthMethod, RedirectURI: redirect,
		Scopes: scopes, TokenStore: got, AuthServerMetadataURL: metadataURL, PKCEEnabled: true, HTTPClient: c.client(),
	}), got
}

// received is where a handler puts the tokens that it gets.
type received struct{ token *transport.Token }

func (t *received) GetToken(context.Context) (*transport.Token, error) {
	return nil, transport.ErrNoToken
}

func (t *received) SaveToken(_ context.Context, token *transport.Token) error {
	t.token = token
	return nil
}

// maxLifetime is how long a token lasts at most. Longer times overflow.
const maxLifetime = 365 * 24 * time.Hour

// in returns r with the tokens.
func (t *received) in(r record) (record, error) {
	switch got := t.token; {
	case got == nil || got.AccessToken == "":
		return r, errors.New("the authorization server sent no access token")
	case got.TokenType != "" && !strings.EqualFold(got.TokenType, "bearer"):
		return r, fmt.Errorf("the access token is of type %q, want Bearer", text.Line(got.TokenType, 80))
	case strings.ContainsFunc(got.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' }):
		return r, errors.New("the access token has characters that no header can have")
	}
	if granted := strings.Fields(t.token.Scope); len(granted) > 0 {
		r.Scopes = granted
	}
	r.AccessToken, r.ExpiresAt = t.token.AccessToken, time.Time{}
	if t.token.RefreshToken != "" {
		r.RefreshToken = t.token.RefreshToken
	}
	if seconds := t.token.ExpiresIn; seconds > 0 {
		lasts := maxLifetime
		if seconds < int64(maxLifetime/time.Second) {
			lasts = time.Duration(seconds) * time.Second
		}
		r.ExpiresAt = time.Now().Add(lasts - min(10*time.Second, lasts/10)) // it must not expire on its way
	}
	return r, nil
}
