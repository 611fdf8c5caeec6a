package login

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// isLoopback reports whether host is this machine. Other names may lead anywhere, also one
// such as 127.evil.example.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// sameOrigin reports whether two addresses have the same scheme and host.
func sameOrigin(a, b string) bool {
	ua, err := url.Parse(a)
	ub, err2 := url.Parse(b)
	return err == nil && err2 == nil && ua.Scheme == ub.Scheme && strings.EqualFold(ua.Host, ub.Host)
}

// origin returns the scheme and the host of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// hostOf returns the host and the port in an address, for people.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return text.Line(u.Host, maxSaid)
}

// sameService reports whether two addresses are likely of one service: they have the same
// scheme and port, and their hosts are equal or one is below the other, www aside. Not so
// hosts side by side: providers give those to everyone.
//
//	https://www.example.com https://api.example.com   yes
//	https://one.workers.dev https://two.workers.dev   no
func sameService(a, b string) bool {
	ua, err := url.Parse(a)
	ub, err2 := url.Parse(b)
	if err != nil || err2 != nil || ua.Scheme != ub.Scheme || ua.Port() != ub.Port() {
		return false
	}
	site := func(u *url.URL) string {
		host := strings.ToLower(u.Hostname())
		if rest, ok := strings.CutPrefix(host, "www."); ok && strings.Contains(rest, ".") {
			return rest
		}
		return host
	}
	ha, hb := site(ua), site(ub)
	return ha != "" && hb != "" && (ha == hb || strings.HasSuffix(ha, "."+hb) || strings.HasSuffix(hb, "."+ha))
}

// plain returns the address of the server as a resource: without a query.
func plain(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}
