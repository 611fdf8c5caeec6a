package resources

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A URI may have so many forms, of so many bytes together. Patterns are matched with
// each.
const (
	maxForms     = 64
	maxFormBytes = 64 << 10
)

// steps are what servers do to a URI before they use it, in whatever order and however
// often.
var steps = [...]func(string) string{
	unescape,
	func(uri string) string { return strings.ReplaceAll(uri, `\`, "/") },
	func(uri string) string { return dots.Replace(uri) },
	func(uri string) string { place, _ := cutTail(uri); return place },
	beforeTail(withoutDots),
	beforeTail(withoutEmpty),
	withoutDots, // of one for which ? and # are as other characters
	withoutEmpty,
	beforeTail(asPath(withoutDots)),
	beforeTail(asPath(withoutEmpty)),
	asPath(withoutDots),
	asPath(withoutEmpty),
	plainHost,
}

// dots undoes escapes of dots only, as web browsers do before they look for segments.
var dots = strings.NewReplacer("%2e", ".", "%2E", ".")

// Forms returns what servers may take a URI for: itself first, and then all that [steps]
// lead to, with their schemes and hosts in lower case. Whoever forbids one of them
// forbids all. It fails if there are too many, or if one is of the web and has a host
// that is not plain ASCII: what others make of such a host is not known.
func Forms(uri string) ([]string, error) {
	lower := foldHost(uri)
	forms, bytes := []string{lower}, len(lower)
	for i := 0; i < len(forms); i++ {
		if !plainASCII(forms[i]) {
			return nil, errors.New("it has a host with characters beside those of ASCII")
		}
		for _, step := range steps {
			form := foldHost(step(forms[i]))
			if slices.Contains(forms, form) {
				continue
			}
			if bytes += len(form); len(forms) == maxForms || bytes > maxFormBytes {
				return nil, fmt.Errorf("it can be taken for too many others, more than the limit of %d or of %d bytes together", maxForms, maxFormBytes)
			}
			forms = append(forms, form)
		}
	}
	if lower != uri {
		forms = append([]string{uri}, forms...)
	}
	return forms, nil
}

// maxUnescapes is how often anybody may undo the escapes of a path.
const maxUnescapes = 3

// plainest returns the one of [Forms] of a URI without a ? or # that all of its spellings
// have among theirs. The URI has passed [checkPath].
func plainest(uri string) string {
	for range maxUnescapes {
		uri = unescape(uri)
	}
	for _, step := range []func(string) string{withoutEmpty, asPath(withoutEmpty), plainHost} {
		uri = step(foldHost(uri))
	}
	return foldHost(uri)
}

func foldHost(uri string) string {
	n := rules.Caseless(uri)
	return strings.ToLower(uri[:n]) + uri[n:]
}

// unescape returns s without percent signs, but for those that escape nothing.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// cutTail splits off what stands behind a ? or #.
func cutTail(uri string) (place, tail string) {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		return uri[:i], uri[i:]
	}
	return uri, ""
}

// beforeTail returns a step that leaves alone what stands behind a ? or #.
func beforeTail(step func(string) string) func(string) string {
	return func(uri string) string { place, tail := cutTail(uri); return step(place) + tail }
}

// cutPath splits a URI into its scheme and host, both of which it may lack, and its path.
func cutPath(uri string) (begin, path string) {
	scheme, rest, found := strings.Cut(uri, ":")
	if !found || strings.ContainsAny(scheme, "/?#") {
		scheme, rest = "", uri
	} else {
		scheme += ":"
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		host, _, _ := strings.Cut(after, "/")
		return scheme + "//" + host, after[len(host):]
	}
	return scheme, rest
}

// withoutDots returns a URI without dot segments, as RFC 3986 takes them out: an empty
// segment is one, too.
func withoutDots(uri string) string {
	begin, path := cutPath(uri)
	if !strings.Contains(path, ".") {
		return uri
	}
	root := strings.HasPrefix(path, "/")
	var kept []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		switch {
		case segment == ".":
		case segment != "..":
			kept = append(kept, segment)
		case len(kept) > 0 && kept[len(kept)-1] != "..":
			kept = kept[:len(kept)-1]
		case !root:
			kept = append(kept, segment)
		}
	}
	if path = strings.Join(kept, "/"); root {
		path = "/" + path
	}
	return begin + path
}

// withoutEmpty returns a URI without dot segments and empty segments, as file systems
// take them out.
func withoutEmpty(uri string) string {
	begin, place := cutPath(uri)
	if place == "" {
		return uri
	}
	slash := strings.HasSuffix(place, "/")
	if place = path.Clean(place); slash && place != "/" {
		place += "/"
	}
	return begin + place
}

// asPath returns a step that takes all behind a server's own scheme for a path, which
// clean cleans: such a scheme need not know of hosts.
func asPath(clean func(string) string) func(string) string {
	return func(uri string) string {
		scheme, rest := cutOwn(uri)
		if scheme == "" {
			return uri
		}
		_, path := cutPath(clean(scheme + ":/" + strings.TrimLeft(rest, "/")))
		return scheme + "://" + strings.TrimLeft(path, "/")
	}
}

// cutOwn splits off the scheme of a URI if that is neither of the web nor file. Else the
// scheme is "".
func cutOwn(uri string) (scheme, rest string) {
	scheme, rest, found := strings.Cut(uri, ":")
	if _, web := ports[scheme]; !found || web || scheme == "file" || strings.ContainsAny(scheme, "/?#") {
		return "", uri
	}
	return scheme, rest
}

// addsHost reports whether form has a host behind a server's own scheme, and uri has
// none: then form has the same path as another form of uri without a host.
func addsHost(form, uri string) bool {
	hosted := func(uri string) bool {
		begin, _ := cutPath(uri)
		return strings.Contains(begin, "//") && !strings.HasSuffix(begin, "/")
	}
	scheme, _ := cutOwn(form)
	return scheme != "" && hosted(form) && !hosted(uri)
}

// ports are those that a URI need not name, by the schemes that always have a host.
var ports = map[string]string{"http": ":80", "https": ":443", "ws": ":80", "wss": ":443", "ftp": ":21"}

// plainHost returns a URI with a host as it is reached: of the web without a user, the
// usual port and the dot of the root, and of a file without any, since what reads files
// seldom looks at it.
func plainHost(uri string) string {
	scheme, rest, found := strings.Cut(uri, ":")
	port, web := ports[scheme]
	switch {
	case !found || !web && scheme != "file":
		return uri
	case !web:
		if _, path := cutPath(uri); strings.HasPrefix(path, "/") {
			return "file://" + path
		} else if strings.HasPrefix(rest, "//") {
			return uri
		}
		return "file:///" + rest
	}
	rest = strings.TrimLeft(rest, "/")
	host, after := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, after = rest[:i], rest[i:]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i+1] + strings.TrimLeft(host[i+1:], "0")
	}
	host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	return scheme + "://" + strings.TrimSuffix(host, ".") + after
}

// plainASCII reports whether a URI that is of the web has a host of visible ASCII alone.
func plainASCII(uri string) bool {
	scheme, _, _ := strings.Cut(uri, ":")
	_, web := ports[scheme]
	return !web || !strings.ContainsFunc(uri[:rules.Caseless(uri)], func(r rune) bool { return r <= ' ' || r > '~' })
}
