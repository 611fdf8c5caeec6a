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
// first used, for any user, and nowhere else. A client that we registered ourselves is
// used only where it was registered.

// firstUse is the trust in a token endpoint of which only the MCP server has told.
const firstUse = "first use"

// trust returns why the secret of the settings may go to a token endpoint: the setting
// that leads there, or [firstUse]. It is "" if there is no secret.
func (s *Settings) trust() string {
	if s.ClientID == "" || s.ClientSecret == "" {
		return ""
	}
	return cmp.Or(s.TokenURL, s.MetadataURL, firstUse)
}

// secret returns the secret of the client of r. That of the settings is not in r.
func (a *Account) secret(r record) string {
	switch {
	case r.Trust == "":
		return r.ClientSecret
	case r.ClientID == a.cfg.ClientID && r.Trust == a.cfg.trust():
		return a.cfg.ClientSecret
	}
	return ""
}

// checkUse fails if the secret of the settings was first used elsewhere than at the
// token endpoint of r. If it was not used yet, noteUse notes that it now goes there.
func (a *Account) checkUse(ctx context.Context, r record) error { return a.use(ctx, r, false) }
func (a *Account) noteUse(ctx context.Context, r record) error  { return a.use(ctx, r, true) }

func (a *Account) use(ctx context.Context, r record, note bool) error {
	if r.Trust != firstUse {
		return nil
	}
	key := fmt.Sprintf("client/%x", sha256.Sum256([]byte(r.URL+"\x00"+r.ClientID)))
	return a.cfg.Store.Update(ctx, key, func(document []byte) ([]byte, error) {
		first, err := parse(document)
		switch {
		case err != nil:
			return nil, err
		case first.TokenURL == "" && note:
			return (&record{URL: r.URL, ClientID: r.ClientID, TokenURL: r.TokenURL}).document(nil)
		case first.TokenURL != "" && first.TokenURL != r.TokenURL:
			return nil, fmt.Errorf("OAuth.ClientSecret was first used at %q, and the server now names %q: if that is right, set OAuth.TokenURL to it",
				text.Line(first.TokenURL, maxSaid), text.Line(r.TokenURL, maxSaid))
		}
		return document, nil
	})
}
