package login

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// An authorization server is known by its issuer. A hostile one may claim the issuer of
// another, show the other's page, and have the code sent to itself. So metadata count
// only at the address that is formed from their issuer (RFC 8414, 3.3), and an answer
// only if it is of the issuer that was asked (RFC 9207). Where an answer does not say that,
// the page and the token endpoint must be of one service, or the settings name the latter.

// Where an issuer publishes its metadata.
const (
	oauthMetadata  = "/.well-known/oauth-authorization-server"
	openIDMetadata = "/.well-known/openid-configuration"
)

// isMetadata reports whether an issuer may publish its metadata at that address.
func isMetadata(address *url.URL) bool {
	return strings.HasPrefix(address.Path, oauthMetadata) || strings.HasPrefix(address.Path, openIDMetadata) || strings.HasSuffix(address.Path, openIDMetadata)
}

// formedFrom reports whether the address of metadata is formed from the issuer. It is
// for both https://h and https://h/, which SDKs write: the slash is removed first (RFC
// 8414, 3.1), so one document speaks for both, and whoever controls it is both. What
// answers say is compared with the issuer as the document spells it.
//
//	https://h/.well-known/oauth-authorization-server        https://h
//	https://h/.well-known/oauth-authorization-server/tenant https://h/tenant
//	https://h/tenant/.well-known/openid-configuration       https://h/tenant
func formedFrom(address *url.URL, issuer string) bool {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(issuer, "?#") || !sameOrigin(address.String(), issuer) {
		return false
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	switch address.EscapedPath() {
	case oauthMetadata + path, openIDMetadata + path, path + openIDMetadata:
		return true
	}
	return false
}

// notOf says that metadata are not those of the issuer that they name.
func notOf(address *url.URL, issuer string) error {
	at := text.Line(address.String(), maxSaid)
	if issuer == "" {
		return fmt.Errorf("the metadata at %q name no issuer, so they may be of anyone: set OAuth.MetadataURL to the metadata of the authorization server that you trust", at)
	}
	return fmt.Errorf("the metadata at %q name the issuer %q, which publishes its own at another address: if you want to log in there, set OAuth.MetadataURL to that address", at, text.Line(issuer, maxSaid))
}

// asked returns the address to which the request went before redirects.
func asked(r *http.Request) *url.URL {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r.URL
}

// fromIssuer fails if the answer with which the browser came back is not of the issuer
// that was asked. An issuer that the settings don't tell is "".
func (d *discovery) fromIssuer(said url.Values) error {
	issuer := d.metadata.Issuer
	if d.promises && said.Get("iss") == "" {
		return fmt.Errorf("the answer does not say whose it is, and %q promises that its answers do: it may be from another authorization server", text.Line(issuer, maxSaid))
	}
	for _, iss := range said["iss"] {
		if issuer != "" && iss != issuer {
			return fmt.Errorf("the answer is from another authorization server: it says %q, and the login is at %q", text.Line(iss, maxSaid), text.Line(issuer, maxSaid))
		}
	}
	return nil
}

// oneService fails if an answer does not say whose it is, and the code in it would go to
// another service than that of the page, which the settings don't name.
func (a *Account) oneService(said url.Values, page, token string) error {
	if said.Get("iss") != "" || a.cfg.TokenURL != "" || a.cfg.MetadataURL != "" || sameService(page, token) {
		return nil
	}
	return fmt.Errorf("the page is at %q, and its answer does not say whose it is: the code was not sent to %q, which may be of another service: "+
		"if you trust it with logins at the page, set OAuth.TokenURL to %q", hostOf(page), hostOf(token), text.Line(token, maxSaid))
}
