package mcphybrid

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"regexp"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

func (m *Manager) upstreamConfig(src *source) upstream.Config {
	cfg := &src.cfg
	to := upstream.Config{Server: *cfg, Invalid: src.invalid, Turns: m.turns, User: m.owner.user, Ask: m.opts.Ask, Extensions: m.opts.Extensions, Log: m.opts.Logger}
	if u, err := url.Parse(cfg.URL); err == nil && cfg.URL != "" {
		src.account = m.account(cfg)
		to.Account, to.Unauthorized = src.account, func(scopes []string) error {
			err := &AuthorizationError{cfg.Name, u.Scheme + "://" + u.Host, scopes}
			if hasToken(cfg) {
				return tokenError{err, cause.ErrToken}
			}
			return err
		}
		if !hasToken(cfg) {
			to.NamesNone = func() error {
				return tokenError{&AuthorizationError{Server: cfg.Name, URL: u.Scheme + "://" + u.Host}, cause.ErrNoLogin}
			}
		}
	}
	return to
}

// hasToken reports whether a configuration has headers of its own that say who calls.
func hasToken(cfg *ServerConfig) bool {
	for name := range cfg.Headers {
		if secretHeader.MatchString(name) {
			return true
		}
	}
	return cfg.HeadersHelper != "" || cfg.HeaderFunc != nil
}

var secretHeader = regexp.MustCompile(`(?i)auth|token|key|secret|cookie`)

// account returns the account of the Manager's user at a server.
func (m *Manager) account(cfg *ServerConfig) *login.Account {
	sum := sha256.Sum256([]byte(cfg.URL))
	to := login.Config{
		URL: cfg.URL, Key: fmt.Sprintf("%s/%s/%x", url.PathEscape(m.user.id), url.PathEscape(cfg.Name), sum[:8]),
		Store: m.opts.TokenStore, HTTP: upstream.Transport(cfg.HTTPClient), Log: m.opts.Logger,
	}
	if cfg.OAuth != nil {
		to.OAuth = *cfg.OAuth
	}
	return login.New(to)
}

// limits returns what a server may take and send, with timeouts of its own.
func (src *source) limits(o *Options) config.Limits {
	l := o.Limits
	l.StartTimeout = cmp.Or(max(src.cfg.StartTimeout, 0), l.StartTimeout)
	l.CallTimeout = cmp.Or(max(src.cfg.CallTimeout, 0), l.CallTimeout)
	return l
}
