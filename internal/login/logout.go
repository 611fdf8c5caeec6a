package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Logout forgets the account's tokens and client, here and in the store. If there were
// tokens, it calls forgotten and has the authorization server revoke them.
func (a *Account) Logout(ctx context.Context, forgotten func() error) error {
	r, err := hostcode.Detached(ctx, "the logout", func() (record, error) { return a.forget(ctx) })
	if err != nil || r.AccessToken == "" && r.RefreshToken == "" {
		return err
	}
	return cmp.Or(forgotten(), a.revoke(ctx, &r))
}

// forget forgets everything and returns what was known. ctx bounds only the wait for
// the turn.
func (a *Account) forget(ctx context.Context) (r record, err error) {
	end, err := a.begin(ctx)
	if err != nil {
		return r, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(a.life, requestTimeout)
	defer cancel()
	err = a.cfg.Store.Update(ctx, a.cfg.Key, func(document []byte) ([]byte, error) {
		stored, _ := parse(document) // what can't be read is deleted too
		r, _ = a.newer(stored)
		return nil, nil
	})
	if err != nil {
		return record{}, err
	}
	a.keep(record{})
	a.hold("token", r.AccessToken, r.RefreshToken, r.ClientSecret)
	return r, nil
}

// revoke ends the tokens of r (RFC 7009), if the authorization server has a way.
func (a *Account) revoke(ctx context.Context, r *record) error {
	if r.RevokeURL == "" {
		return nil
	}
	if !sameOrigin(r.RevokeURL, r.TokenURL) { // it might be anyone's
		return notRevoked(fmt.Errorf("that is done at %q, and tokens come from %q", text.Line(r.RevokeURL, maxSaid), text.Line(r.TokenURL, maxSaid)))
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := a.namedNow(ctx, r.RevokeURL); err != nil {
		return notRevoked(err)
	}
	proof, unnamed := a.revocationProof(ctx, r)
	err := a.revokeToken(ctx, r, proof, "refresh_token", r.RefreshToken)
	second := a.revokeToken(ctx, r, proof, "access_token", r.AccessToken)
	var refused transport.OAuthError
	if errors.As(second, &refused) && refused.ErrorCode == "unsupported_token_type" {
		second = nil // the authorization server does not keep them
	}
	if err = cmp.Or(err, second); err != nil && unnamed != nil {
		err = fmt.Errorf("%w; %s was not sent there: %w", err, a.cfg.proofName(), unnamed)
	}
	if err != nil {
		return notRevoked(err)
	}
	return nil
}

// namedNow fails if the server does not lead to that revocation endpoint. The record of
// an account is not enough: who can write the store must not get tokens.
func (a *Account) namedNow(ctx context.Context, address string) error {
	d, err := a.discover(ctx)
	switch {
	case ctx.Err() != nil: // then the metadata may be a guess
		return context.Cause(ctx)
	case err != nil:
		return err
	case d.metadata.RevocationEndpoint == "":
		return fmt.Errorf("the login says that this is done at %q, and no metadata say so now", text.Line(address, maxSaid))
	case d.metadata.RevocationEndpoint != address:
		return fmt.Errorf("the login says that this is done at %q, and the metadata say at %q now", text.Line(address, maxSaid), text.Line(d.metadata.RevocationEndpoint, maxSaid))
	}
	return nil
}

func notRevoked(err error) error {
	return text.Bounded(fmt.Errorf("the tokens are deleted here, but were not revoked: %w", err))
}

var errUnnamed = errors.New("no trusted metadata name the endpoint; set OAuth.MetadataURL if they should")

// revocationProof returns the proof of the client of r for the revocation endpoint.
// If that of the settings may not go there, the error says why.
func (a *Account) revocationProof(ctx context.Context, r *record) (proof, error) {
	if r.Trust == "" {
		return a.proof(r, false)
	}
	first, err := a.firstUse(ctx, new(record))
	if err != nil {
		return proof{}, err
	}
	at, err := a.named(ctx, first)
	if err != nil {
		return proof{}, err
	}
	if p, err := a.proof(r, at.revocation == r.RevokeURL); err != nil || p != (proof{}) {
		return p, err
	}
	return proof{}, errUnnamed
}

func (a *Account) revokeToken(ctx context.Context, r *record, p proof, kind, token string) error {
	if token == "" {
		return nil
	}
	_, err := a.post(ctx, r.RevokeURL, r, p, url.Values{"token": {token}, "token_type_hint": {kind}})
	return err
}

// post sends a form to an address of the authorization server of r, as its client with
// that proof, and returns the answer.
func (a *Account) post(ctx context.Context, address string, r *record, p proof, form url.Values) ([]byte, error) {
	basic := r.basic(p.secret)
	if !basic {
		form.Set("client_id", r.ClientID)
	}
	switch {
	case p.assertion != "":
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", p.assertion)
	case !basic && p.secret != "":
		form.Set("client_secret", p.secret)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if basic {
		request.SetBasicAuth(url.QueryEscape(r.ClientID), url.QueryEscape(p.secret)) // RFC 6749, 2.3.1
	}
	resp, err := a.transport().client().Do(request)
	if err != nil {
		return nil, text.WithoutURL(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body) // bounded: see [oauthTransport]
	if err != nil {
		return nil, text.WithoutURL(err)
	}
	var refused transport.OAuthError
	_ = json.Unmarshal(body, &refused) // an answer may be empty
	switch {
	case refused.ErrorCode != "":
		return nil, refused
	case resp.StatusCode/100 != 2:
		return nil, fmt.Errorf("the authorization server answers with status %d", resp.StatusCode)
	}
	return body, nil
}

// basic reports whether the client proves that it has the secret by a header, as
// mcp-go decides for tokens.
func (r *record) basic(secret string) bool {
	const basic, post = "client_secret_basic", "client_secret_post"
	switch {
	case secret == "":
		return false
	case r.AuthMethod != "":
		return r.AuthMethod == basic
	}
	return slices.Contains(r.AuthMethods, basic) && !slices.Contains(r.AuthMethods, post)
}
