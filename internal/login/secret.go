package login

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// The client secret of the settings belongs to one authorization server. But the MCP
// server says which one that is, and a hostile one says its own. So the secret goes
// where the settings say. If they don't, it goes to the token endpoint at which it was
// first used, for any user, and nowhere else. The record of an account does not say
// it: who can write the store must not get the secret. A client that we registered
// ourselves is used only where it was registered.

// firstUse is the trust in a token endpoint of which only the MCP server has told.
const firstUse = "first use"

// trust returns why the secret of the settings, or what their key signs, may go to a token
// endpoint: the setting
// that leads there, or [firstUse]. It is "" if there is no secret.
func (s *Config) trust() string {
	if s.ClientID == "" || s.ClientSecret == "" && s.PrivateKey == "" {
		return ""
	}
	return cmp.Or(s.TokenURL, s.MetadataURL, firstUse)
}

// secret returns the secret of the client of r. That of the settings is not in r, and
// is returned only for an address that is trusted.
func (a *Account) secret(r *record, trusted bool) string {
	switch {
	case r.Trust == "":
		return r.ClientSecret
	case trusted && r.ClientID == a.cfg.ClientID && r.Trust == a.cfg.trust():
		return a.cfg.ClientSecret
	}
	return ""
}

// A proof is how a client shows that it is the one that was registered. It has a secret or
// an assertion, or nothing.
type proof struct{ secret, assertion string }

// proofName returns what errors call the proof of the client.
func (s *Config) proofName() string {
	if s.PrivateKey != "" {
		return "an assertion by OAuth.PrivateKey"
	}
	return "OAuth.ClientSecret"
}

// proof returns that of the client of r, for an address that is trusted or not: see
// [Account.secret].
func (a *Account) proof(r *record, trusted bool) (p proof, err error) {
	if a.cfg.PrivateKey == "" {
		return proof{secret: a.secret(r, trusted)}, nil
	}
	if trusted && r.ClientID == a.cfg.ClientID && r.Trust == a.cfg.trust() {
		p.assertion, err = assertion(a.cfg.PrivateKey, a.cfg.KeyID, r.ClientID, cmp.Or(r.Issuer, r.TokenURL), r.Algorithms)
		a.hold("token", p.assertion)
	}
	return p, err
}

// endpoints are where the secret of the settings may go, each "" for nowhere.
type endpoints struct{ token, revocation string }

// tokenEndpoint returns the token endpoint to which the secret may go.
func (a *Account) tokenEndpoint(ctx context.Context, first endpoints) (string, error) {
	if a.cfg.TokenURL != "" {
		return a.cfg.TokenURL, nil
	}
	at, err := a.named(ctx, first)
	return at.token, err
}

// named returns the endpoints in metadata that are trusted: those at MetadataURL, as
// they are now, else those of the first use. It has none if only TokenURL is set.
func (a *Account) named(ctx context.Context, first endpoints) (endpoints, error) {
	if a.cfg.MetadataURL == "" {
		return first, nil
	}
	h, _, err := a.ask(ctx, plain(a.cfg.URL), nil)
	if err != nil {
		return endpoints{}, fmt.Errorf("reading OAuth.MetadataURL: %w", text.WithoutURL(err))
	}
	m, err := h.GetServerMetadata(ctx) // it has them
	if err != nil {
		return endpoints{}, err
	}
	return endpoints{m.TokenEndpoint, m.RevocationEndpoint}, nil
}

// checkUse fails if the secret of the settings was first used elsewhere than at the
// token endpoint of r. If it was not used yet, noteUse notes that it now goes there.
func (a *Account) checkUse(ctx context.Context, r *record) error { return a.use(ctx, r, new(record)) }
func (a *Account) noteUse(ctx context.Context, r *record) error  { return a.use(ctx, r, r) }

func (a *Account) use(ctx context.Context, r, note *record) error {
	first, err := a.firstUse(ctx, note)
	if err == nil && first.token != "" && first.token != r.TokenURL {
		err = fmt.Errorf("%s was first used at %q, and the server now names %q: if that is right, set OAuth.TokenURL to it",
			a.cfg.proofName(), text.Line(first.token, maxSaid), text.Line(r.TokenURL, maxSaid))
	}
	return err
}

// firstUse returns where the secret of the settings was first used, if they do not say
// where it goes. If it was not used yet, that becomes the endpoints of note, if it has
// any.
func (a *Account) firstUse(ctx context.Context, note *record) (first endpoints, err error) {
	if a.cfg.trust() != firstUse {
		return first, nil
	}
	key := fmt.Sprintf("client/%x", sha256.Sum256([]byte(a.cfg.URL+"\x00"+a.cfg.ClientID)))
	err = a.cfg.Store.Update(ctx, key, func(document []byte) ([]byte, error) {
		r, err := parse(document)
		if err != nil {
			return nil, err
		}
		if r.TokenURL == "" && note.TokenURL != "" {
			r = record{URL: a.cfg.URL, ClientID: a.cfg.ClientID, TokenURL: note.TokenURL, RevokeURL: note.RevokeURL}
			document, err = r.document(nil)
		}
		first = endpoints{r.TokenURL, r.RevokeURL}
		return document, err
	})
	return first, err
}
