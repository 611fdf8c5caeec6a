// Package hosts decides by which names this machine may be reached. A web page can have a name
// of its own lead to an address that only we can reach (DNS rebinding): the browser then sends
// our answers to that page. The name is in the request, so we know it for another's.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// IsLoopback reports whether host is this machine. Other names may lead anywhere, also one
// such as 127.evil.example.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// Named returns the host that a request names, as [Bare].
func Named(r *http.Request) string { return Bare(r.Host) }

// Bare returns a host in lower case, without port and brackets. What is behind the last
// colon belongs to the host if it is no port.
func Bare(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.Trim(port, "0123456789") != "" {
		host = address
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// Permits reports whether a request names a host of ours: one of loopback, the address at
// which it has come in, or one of names, which are bare.
func Permits(r *http.Request, names []string) bool {
	host := Named(r)
	if IsLoopback(host) || slices.Contains(names, host) {
		return true
	}
	named, _ := netip.ParseAddr(host)
	at, ok := Local(r)
	return ok && named.Unmap().WithZone("") == at
}

// Local returns the address at which a request has come in, without zone. It returns false if
// there is none: the request is of a test, or came over a socket in the file system.
func Local(r *http.Request) (netip.Addr, bool) {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddrPort(at.String())
	return ip.Addr().Unmap().WithZone(""), err == nil
}
