package login

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// clientName is what a page of an authorization server calls us.
const clientName = "mcphybrid"

// errNoLogin says what helps with a server that wants a token but names no authorization server.
var errNoLogin = errors.New(`the server offers no login: put a token into its headers, in the form "headers": {"Authorization": "Bearer ${TOKEN}"}`)

// A Page is where the user logs in.
type Page struct {
	URL       string
	Issuer    string // the host of the issuer of the authorization server, or "" if the settings don't tell
	TokenHost string // to which the code goes
}

// Open shows the user the page. It may return the address to which the page sent the
// browser in the end, or "" if the browser reaches this machine.
type Open func(ctx context.Context, page Page) (redirected string, err error)

// Login lets the user log in, until ctx or the account ends. It opens one page, waits for the answer
// and keeps the tokens. Other logins and refreshes of the account in this process go
// on meanwhile. A client that signs in as itself asks for a new token instead.
func (a *Account) Login(ctx context.Context, open Open) error {
	if a.SignsInItself() {
		_, err := hostcode.Detach(ctx, "the login", func() error { return text.Bounded(a.askAnew(ctx)) })
		return err
	}
	if err := a.enter(); err != nil {
		return err
	}
	defer a.busy.Done()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(a.logins, end)()
	at := new(place)
	defer at.leave()
	_, err := hostcode.Detach(ctx, "the login", func() error { return a.logIn(ctx, at, open) })
	if err != nil && a.logins.Err() != nil {
		return errClosed
	}
	return err
}

func (a *Account) logIn(ctx context.Context, at *place, open Open) error {
	a.setUnnamed(false)
	known, err := a.stored(ctx)
	var r record
	if err == nil {
		r, err = a.login(ctx, known, at, open)
	}
	if err == nil {
		_, err = r.document(nil)
	}
	if err != nil {
		return text.Bounded(text.WithoutURL(a.forgetsClient(ctx, &r, err)))
	}
	end, err := a.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	// The code is spent: whatever ctx says, the tokens are kept.
	inner, cancel := context.WithTimeout(a.life, requestTimeout)
	defer cancel()
	stored := known
	err = a.cfg.Store.Update(inner, a.cfg.Key, func(document []byte) ([]byte, error) {
		stored, _ = a.parse(document)
		r.Wanted = r.wantedSince(known, stored)
		return r.document(nil)
	})
	a.keepUntold(r, stored, err)
	if err != nil {
		return &UnsavedError{err}
	}
	return nil
}

// An UnsavedError says that somebody has logged in, and that the login can't be saved. It counts
// until the account is closed.
type UnsavedError struct{ err error }

func (e *UnsavedError) Error() string {
	return "the login counts only until this program ends: " + e.err.Error()
}

// Unwrap returns the error of the store.
func (e *UnsavedError) Unwrap() error { return e.err }

// login returns a login that is to replace the known one. It listens at a place.
func (a *Account) login(ctx context.Context, known record, at *place, open Open) (r record, err error) {
	to, err := listen(a.cfg.RedirectURI, known.RedirectURI)
	if err != nil {
		return r, err
	}
	defer to.close()
	at.take(to.listener)
	found, err := a.discover(ctx)
	if err != nil {
		return r, err
	}
	a.hold("token", known.AccessToken, known.RefreshToken, known.ClientSecret)
	found.scopes = a.harmless(a.asks(&known, found.scopes))
	if r, err = a.client(ctx, found, known, to.address); err != nil {
		return r, err
	}
	if err := a.checkUse(ctx, &r); err != nil {
		return r, err
	}
	state, err := transport.GenerateState()
	if err != nil {
		return r, err
	}
	verifier, err := transport.GenerateCodeVerifier()
	if err != nil {
		return r, err
	}
	a.hold("token", state, verifier)
	page, err := a.page(&found, &r, to.address, state, verifier)
	if err != nil {
		return r, err
	}
	said, err := to.wait(ctx, Page{page, hostOf(r.Issuer), hostOf(r.TokenURL)}, state, open)
	if err != nil {
		return r, err
	}
	code, err := codeIn(said, state, &found)
	if err != nil {
		return r, err
	}
	if err := a.oneService(said, page, r.TokenURL); err != nil {
		return r, err
	}
	a.hold("token", code)
	if err := a.noteUse(ctx, &r); err != nil {
		return r, err
	}
	h, got := a.handler(&r, to.address, nil)
	h.SetExpectedState(state)
	if err := h.ProcessAuthorizationResponse(ctx, code, state, verifier); err != nil {
		err = fmt.Errorf("exchanging the code: %w", text.WithoutURL(err))
		if refused := (transport.OAuthError{}); errors.As(err, &refused) {
			err = ofClient(refused.ErrorCode, err)
		}
		return r, err
	}
	if r, err = got.in(r); err == nil {
		r.follows(known)
	}
	return r, err
}

// A clientError says that an authorization server does not let the client log anybody in.
type clientError struct{ error }

func (e *clientError) Unwrap() error { return e.error }

// ofClient returns err, which the authorization server calls code, as a [clientError] if it is
// one.
func ofClient(code string, err error) error {
	if code == "invalid_client" || code == "unauthorized_client" {
		return &clientError{err}
	}
	return err
}

// forgetsClient returns err. If it is that a client, which we registered, may not log anybody in any
// more, the next login registers another one. The tokens stay, with the client that got them.
func (a *Account) forgetsClient(ctx context.Context, r *record, err error) error {
	if refused := new(clientError); r.RedirectURI == "" || !errors.As(err, &refused) {
		return err
	}
	failed := a.cfg.Store.Update(ctx, a.cfg.Key, func(document []byte) ([]byte, error) {
		stored, err := a.parse(document)
		if err != nil || stored.ClientID != r.ClientID {
			return document, nil
		}
		stored.RedirectURI = "" // so it is not one for new logins
		return stored.document(document)
	})
	if failed != nil {
		return fmt.Errorf("%w; and the client that is refused stays in the store: %w", err, failed)
	}
	return fmt.Errorf("%w: the client %q is refused, so the next login registers another one", err, text.Line(r.ClientID, maxSaid))
}

// stored returns the record in the store.
func (a *Account) stored(ctx context.Context) (r record, err error) {
	err = a.cfg.Store.Update(ctx, a.cfg.Key, func(document []byte) ([]byte, error) {
		r, _ = a.parse(document) // the login replaces what can't be read
		return document, nil
	})
	return r, err
}

// client returns a record with the client to be used: the configured one, the published one,
// the known one, or a new one.
func (a *Account) client(ctx context.Context, d discovery, known record, redirect string) (record, error) {
	m := d.metadata
	r := record{
		URL: a.cfg.URL, Issuer: m.Issuer, TokenURL: cmp.Or(a.cfg.TokenURL, m.TokenEndpoint), Resource: d.resource,
		AuthMethods: m.TokenEndpointAuthMethodsSupported, ClientID: a.cfg.ClientID, Trust: a.cfg.trust(),
		GrantType: a.cfg.grantType(), Algorithms: m.TokenEndpointAuthSigningAlgValuesSupported,
		registration: m.RegistrationEndpoint, RevokeURL: m.RevocationEndpoint, Scopes: d.scopes,
	}
	switch {
	case r.ClientID != "":
	case a.cfg.ClientSecret != "":
		return r, errors.New("OAuth.ClientSecret goes with OAuth.ClientID")
	case a.cfg.ClientMetadataURL != "" && d.documents:
		r.ClientID, r.AuthMethod = a.cfg.ClientMetadataURL, "none"
	case known.ClientID != "" && known.RedirectURI == redirect && known.Issuer == r.Issuer && known.TokenURL == r.TokenURL &&
		(known.ClientScopes == nil || within(d.scopes, known.ClientScopes)):
		r.ClientID, r.ClientSecret, r.AuthMethod, r.RedirectURI, r.ClientScopes = known.ClientID, known.ClientSecret, known.AuthMethod, redirect, known.ClientScopes
	case r.registration == "":
		return r, errors.New("the authorization server registers no clients by itself: set OAuth.ClientID to one that is registered there")
	default:
		h, _ := a.handler(&r, redirect, d.scopes)
		if err := h.RegisterClient(ctx, clientName); err != nil {
			err = fmt.Errorf("registering as a client: %w", text.WithoutURL(err))
			if d.guessed {
				err = fmt.Errorf("%w: %w", errNoLogin, err)
			}
			return r, err
		}
		r.ClientID, r.ClientSecret, r.AuthMethod, r.RedirectURI, r.ClientScopes = h.GetClientID(), h.GetClientSecret(), h.GetTokenEndpointAuthMethod(), redirect, d.scopes
	}
	a.hold("token", r.ClientSecret)
	return r, nil
}

// maxPage is how many bytes the address of a page may have.
const maxPage = 32 << 10

// page returns the address of the page where the user logs in.
func (a *Account) page(d *discovery, r *record, redirect, state, verifier string) (string, error) {
	u, err := url.Parse(cmp.Or(a.cfg.AuthorizationURL, d.metadata.AuthorizationEndpoint))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || a.transport().secure && u.Scheme != "https" {
		return "", errors.New("the address of the authorization server's page is not an https URL")
	}
	query := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": r.ClientID, "redirect_uri": redirect, "state": state, "resource": r.Resource,
		"code_challenge": transport.GenerateCodeChallenge(verifier), "code_challenge_method": "S256",
		"scope": strings.Join(d.scopes, " "),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	page := u.String()
	if len(page) > maxPage {
		return "", fmt.Errorf("the address of the authorization server's page has %d bytes, more than the limit of %d", len(page), maxPage)
	}
	return page, nil
}

// codeIn returns the code in the query to which the user was redirected.
func codeIn(said url.Values, state string, d *discovery) (string, error) {
	if !sameState(said, state) {
		return "", errors.New("the answer is to another login: its state differs")
	}
	if err := d.fromIssuer(said); err != nil {
		return "", err
	}
	if refused := said.Get("error"); refused != "" {
		return "", ofClient(refused, fmt.Errorf("the authorization server refused the login: %s", text.Line(strings.TrimSuffix(refused+": "+said.Get("error_description"), ": "), maxSaid)))
	}
	if said.Get("code") == "" {
		return "", errors.New("the answer has no code")
	}
	return said.Get("code"), nil
}

func sameState(said url.Values, state string) bool {
	return subtle.ConstantTimeCompare([]byte(said.Get("state")), []byte(state)) == 1
}
