package config

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// An address can be written in many ways. Some mean the same by all rules: letter case
// here, the port that the scheme implies, a dot behind the host, %6d for m. Others mean
// the same to many servers: %2f for /, a/../b for b, a slash at the end. An address is
// denied in all these ways, and allowed only in the first. In the second, we are loose.

// literal returns an address or a pattern of one in which a ? stands for itself: to
// [rules.Match], it stands for any character. No address has a NUL.
func literal(address string) string { return strings.ReplaceAll(address, "?", "\x00") }

// addressPatterns returns ways to write the pattern of an address.
func addressPatterns(pattern string, loose bool) []string {
	patterns := []string{literal(strings.ToLower(pattern)), literal(plainPattern(pattern, false))}
	if loose {
		all := literal(plainPattern(pattern, true))
		patterns = append(patterns, all, strings.TrimPrefix(all, "*://")) // "http*x.com" has a part of the scheme
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}

// clear reports whether it is clear which host an address means: others have more
// ways to be written.
func clear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && !strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' || r == '%' })
}

// addressForms returns ways to write the address, in lower case. What it has is one, but
// if it is to be allowed, it must not have a part that says nothing of where it leads: a
// user or a fragment could have any host in it.
func addressForms(address string, loose bool) (forms []string) {
	u, err := url.Parse(address)
	if loose || err == nil && u.Host != "" && u.User == nil && !strings.Contains(address, "#") {
		forms = append(forms, literal(strings.ToLower(address)))
	}
	if err != nil || u.Host == "" {
		return forms
	}
	ends := []string{unescaped(cmp.Or(u.EscapedPath(), "/"), false)}
	if loose {
		clean := strings.TrimSuffix(path.Clean("/"+u.Path), "/")
		ends = append(ends, clean, clean+"/")
	}
	if u.RawQuery != "" {
		ends[0] += "?" + unescaped(u.RawQuery, false)
	}
	port, implied := plainPort(u.Port()), map[string]string{"https": "443", "http": "80"}[u.Scheme]
	hosts := []string{withPort(u.Hostname(), cmp.Or(port, implied))}
	if port == "" || port == implied {
		hosts = append(hosts, withPort(u.Hostname(), ""))
	}
	for _, host := range hosts {
		for _, end := range ends {
			forms = append(forms, literal(strings.ToLower(u.Scheme+"://"+host+end)))
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

func withPort(host, port string) string {
	host = strings.TrimRight(host, ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" {
		host += ":" + port
	}
	return host
}

// plainPort returns the port without the zeros before it.
func plainPort(port string) string {
	if strings.Trim(port, "0123456789") != "" { // a pattern
		return port
	}
	return cmp.Or(strings.TrimLeft(port, "0"), port)
}

// plainPattern returns the pattern of an address as addressForms writes addresses. If
// loose, one without a scheme is for all, and it has no query and no slash at its end.
func plainPattern(pattern string, loose bool) string {
	if i := strings.IndexAny(pattern, "?#"); loose && i >= 0 && !anyAddress(pattern[:i]) {
		pattern = pattern[:i]
	}
	pattern = strings.ToLower(unescaped(pattern, loose))
	scheme, rest, ok := strings.Cut(pattern, "://")
	switch {
	case ok:
	case loose:
		scheme, rest = "*", pattern
	default:
		return pattern
	}
	host, end := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, end = rest[:i], "/"+strings.TrimPrefix(rest[i:], "/")
	}
	host = host[strings.LastIndex(host, "@")+1:]
	port := ""
	if i := strings.LastIndex(host, ":"); i > strings.LastIndex(host, "]") {
		host, port = host[:i], strings.TrimSuffix(":"+plainPort(host[i+1:]), ":")
	}
	if loose {
		end = strings.TrimSuffix(path.Clean(end), "/")
	}
	return scheme + "://" + strings.TrimRight(host, ".") + port + end
}

// anyAddress reports whether a pattern says nothing but the scheme: what counts in
// "*?token=*" is the query.
func anyAddress(pattern string) bool {
	if _, rest, ok := strings.Cut(pattern, "://"); ok {
		pattern = rest
	}
	return strings.Trim(pattern, "*/") == ""
}

var escapes = regexp.MustCompile("%[0-9a-fA-F]{2}")

// unescaped returns s with the characters for which it has escapes that mean the same;
// if all, for which it has any.
func unescaped(s string, all bool) string {
	return escapes.ReplaceAllStringFunc(s, func(escape string) string {
		c, _ := url.PathUnescape(escape)
		if all || safeName(c, ".~", 1) == c && c != "_" || escape == "%5f" || escape == "%5F" {
			return c
		}
		return escape
	})
}
