package login

import (
	"net/url"
	"strings"
)

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

// plain returns the address of the server as a resource: without a query.
func plain(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}
