package login

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
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

// hostOf returns the host and the port in an address, for people.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return text.Line(u.Host, maxSaid)
}

// sameService reports whether a page and a token endpoint are likely of one service: they
// have the same scheme and port, and their hosts are equal or one is below the other, www of
// the page aside. Not so hosts side by side: providers give those to everyone, also www.
//
//	https://www.example.com https://api.example.com   yes
//	https://one.workers.dev https://two.workers.dev   no
//	https://one.workers.dev https://www.workers.dev   no
func sameService(page, token string) bool {
	ua, err := url.Parse(page)
	ub, err2 := url.Parse(token)
	if err != nil || err2 != nil || ua.Scheme != ub.Scheme || ua.Port() != ub.Port() {
		return false
	}
	ha, hb := strings.ToLower(ua.Hostname()), strings.ToLower(ub.Hostname())
	if rest, ok := strings.CutPrefix(ha, "www."); ok && strings.Contains(rest, ".") {
		ha = rest
	}
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

// addressIn returns the address that a host is, if it is one and no name. What some
// resolvers take for an address, such as 127.1 and 0x7f000001, counts as the invalid one.
func addressIn(host string) (ip netip.Addr, ok bool) {
	trimmed := strings.ToLower(strings.TrimSuffix(host, "."))
	for _, spelling := range []string{host, trimmed} {
		if ip, err := netip.ParseAddr(spelling); err == nil {
			return ip, true
		}
	}
	host = trimmed
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "localhost" { // RFC 6761, 6.3: also the names below it
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	hex, isHex := strings.CutPrefix(last, "0x")
	return netip.Addr{}, isHex && strings.Trim(hex, "0123456789abcdef") == "" || last != "" && strings.Trim(last, "0123456789") == ""
}

// notPublic are the addresses that nobody has on the public internet, besides those that
// package netip knows.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this machine
	netip.MustParsePrefix("100.64.0.0/10"),    // of carriers (RFC 6598), and of private networks on top of others
	netip.MustParsePrefix("192.0.0.0/24"),     // of protocols, and of a cloud's metadata
	netip.MustParsePrefix("168.63.129.16/32"), // of Azure, for its machines alone
	netip.MustParsePrefix("198.18.0.0/15"),    // of measurements (RFC 2544)
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved
	netip.MustParsePrefix("2001::/32"),        // Teredo (RFC 4380), which may lead anywhere
	netip.MustParsePrefix("100::/64"),         // nowhere (RFC 6666)
	netip.MustParsePrefix("64:ff9b:1::/48"),   // of local translators (RFC 8215)
	netip.MustParsePrefix("fec0::/10"),        // local, as once defined
}

// isInternal reports whether only some machines can reach an address, such as this one.
func isInternal(ip netip.Addr) bool {
	ip = inner(ip)
	if !ip.IsValid() || !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return true
	}
	for _, p := range notPublic {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// metadata are the addresses at which clouds give a machine its credentials, besides those
// that are link-local: of AWS, Alibaba, Oracle and Azure.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
}

// isLinkLocal reports whether an address is of the same cable, or of the cloud that the
// machine runs in.
func isLinkLocal(ip netip.Addr) bool {
	ip = inner(ip)
	return ip.IsLinkLocalUnicast() || slices.Contains(metadata, ip)
}

// inner returns the IPv4 address to which packets for an IPv6 address go in the end, or
// the address itself, without a zone.
func inner(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if !ip.Is6() || ip.IsLoopback() || ip.IsUnspecified() {
		return ip
	}
	b := ip.As16()
	switch {
	case [12]byte(b[:12]) == [12]byte{}, // an older form of mapped ones
		[12]byte(b[:12]) == [12]byte{8: 0xff, 9: 0xff},                // translated ones (RFC 2765)
		b[8]&^2 == 0 && [3]byte(b[9:12]) == [3]byte{0x00, 0x5e, 0xfe}, // ISATAP (RFC 5214)
		[12]byte(b[:12]) == [12]byte{0x00, 0x64, 0xff, 0x9b}:          // NAT64 (RFC 6052)
		return netip.AddrFrom4([4]byte(b[12:]))
	case b[0] == 0x20 && b[1] == 0x02: // 6to4 (RFC 3056)
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return ip
}
