package upstream

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/login"
)

// A HeaderSource returns headers for a request that has given already; its own
// replace these. refused is nil unless the server has just refused the same request:
// then the request is sent once more if the source returns other headers. It is
// called concurrently and must heed ctx.
type HeaderSource func(ctx context.Context, given http.Header, refused *Refusal) (http.Header, error)

// A Refusal says that the server answered a request with status 401, or with 403 for
// want of scopes.
type Refusal struct {
	Sent       http.Header // all headers of the request
	Challenges []string    // the WWW-Authenticate headers of the answer
	Scopes     []string    // that the request lacks; nil with status 401
	Again      bool        // it has refused the request with other headers before
}

// refusal returns the Refusal in the answer to a request with these headers, or nil.
// Scopes that repeat a secret are left out: hosts are told of them.
func (a *authorizer) refusal(sent http.Header, resp *http.Response) *Refusal {
	r := &Refusal{Sent: sent, Challenges: resp.Header.Values("WWW-Authenticate")}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return r
	case http.StatusForbidden:
		if r.Scopes = slices.DeleteFunc(login.Lacking(r.Challenges), a.secrets.in); len(r.Scopes) > 0 {
			return r
		}
	}
	return nil
}

// A scopeError is the error of a request that lacks scopes.
type scopeError struct{ error }

func (e scopeError) Unwrap() error { return e.error }

// An authorizer gives the requests of a connection the headers of the configuration.
type authorizer struct {
	server  *url.URL
	fixed   map[string]string
	sources []HeaderSource
	account HeaderSource // behind these; nil without one
	secrets *secrets     // learns what the sources return

	unauthorized func(scopes []string) error
	changing     *atomic.Bool // a source had headers
}

// authorize returns r with its headers, or an error if r does not go to the server.
func (a *authorizer) authorize(r *http.Request, refused *Refusal) (*http.Request, error) {
	if r.URL.Host != a.server.Host || a.server.Scheme == "https" && r.URL.Scheme != "https" {
		return nil, fmt.Errorf("refused to send a request to host %q", r.URL.Host)
	}
	r = r.WithContext(r.Context())
	r.Header = r.Header.Clone()
	for name, value := range a.fixed {
		r.Header.Set(name, value)
	}
	add := func(source HeaderSource, refused *Refusal) error {
		more, err := source(r.Context(), r.Header, refused)
		if err == nil && len(more) > maxHeaders {
			err = fmt.Errorf("there are %d headers, more than the limit of %d", len(more), maxHeaders)
		}
		if err != nil {
			return err
		}
		if len(more) > 0 {
			a.changing.Store(true)
		}
		for name, values := range more {
			a.secrets.hold(name, values)
			r.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
		return nil
	}
	told := refused
	if refused != nil && refused.Again {
		told = nil // only the account is told twice
	}
	for _, source := range a.sources {
		if err := add(source, told); err != nil {
			return nil, err
		}
	}
	if a.account != nil {
		if err := add(a.account, refused); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// send sends r by base. If the server refuses the credentials, and there are others,
// it sends r once more with these, and with an account twice: what another process has
// kept there may be too old as well.
func (a *authorizer) send(r *http.Request, base http.RoundTripper, failed *outcome) (*http.Response, error) {
	authorized, err := a.authorize(r, nil)
	if err != nil {
		return nil, failed.refuse(err)
	}
	for tries := 1; ; tries++ {
		resp, err := base.RoundTrip(authorized)
		if err != nil {
			failed.note(err)
			return nil, err
		}
		refused := a.refusal(authorized.Header, resp)
		spent := tries == 3 || tries == 2 && a.account == nil
		if refused == nil || refused.Scopes == nil && spent || r.Body != nil && r.GetBody == nil {
			return resp, nil
		}
		refused.Again = tries > 1
		again, err := a.authorize(r, refused)
		if err == nil && (tries > 1 && refused.Scopes != nil || maps.EqualFunc(again.Header, authorized.Header, slices.Equal)) {
			if refused.Scopes == nil || failed == nil {
				return resp, nil
			}
			err = scopeError{a.unauthorized(refused.Scopes)}
		}
		resp.Body.Close()
		if err == nil && r.Body != nil {
			again.Body, err = r.GetBody()
		}
		if err != nil {
			return nil, failed.refuse(err)
		}
		authorized = again
	}
}

// logIn returns the source of the header of an account. It leaves alone a request that
// has such a header.
func logIn(account *login.Account) HeaderSource {
	return func(ctx context.Context, given http.Header, refused *Refusal) (http.Header, error) {
		if given.Get("Authorization") != "" {
			return nil, nil
		}
		var r *login.Refusal
		if refused != nil {
			r = &login.Refusal{Header: refused.Sent.Get("Authorization"), Challenges: refused.Challenges, Scopes: refused.Scopes, Again: refused.Again}
		}
		value, err := account.Header(ctx, r)
		if value == "" || err != nil {
			return nil, err
		}
		return http.Header{"Authorization": {value}}, nil
	}
}

// maxHeaders is how many headers a source may return.
const maxHeaders = 64
