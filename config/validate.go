package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// Validate returns every problem of s, joined, without the server's name. It does not
// look for the program or connect.
func (s Server) Validate() error {
	if s.Unset != nil {
		return unset(s.Unset)
	}
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(format, args...))
	}
	if s.Name == "" {
		problem("the name is empty")
	}
	if !utf8.ValidString(s.Name) { // a state and a store would have another
		problem("the name is not valid UTF-8")
	}
	ways := 0
	for _, given := range []bool{s.Command != "", s.URL != "", s.InProcess != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		problem("want exactly one of command and url")
	}
	if s.Protocol != "" && !mcp.IsValidProtocolVersion(s.Protocol) {
		problem("the protocol is not known here: want one of %s", strings.Join(mcp.ValidProtocolVersions, ", "))
	}
	if s.URL != "" {
		// Parse's error would repeat the URL, which may hold a secret.
		if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			problem("the url is not an http or https URL")
		}
	}
	// The system takes a NUL byte for the end of a string. The first is enough to tell.
	texts := []string{"the command", s.Command, "the working directory", s.Dir, "headersHelper", s.HeadersHelper}
	for i, arg := range s.Args {
		texts = append(texts, "argument "+strconv.Itoa(i+1), arg)
	}
	const nul = "has a NUL byte, which no program can be given"
	for i := 1; i < len(texts); i += 2 {
		if strings.IndexByte(texts[i], 0) >= 0 {
			problem("%s %s", texts[i-1], nul)
			break
		}
	}
	for _, key := range keys(s.Env) {
		why := ""
		switch {
		case key == "" || strings.IndexByte(key, '=') >= 0:
			why = "its name is empty or has an equals sign"
		case strings.IndexByte(key+s.Env[key], 0) >= 0:
			why = "it " + nul
		default:
			continue
		}
		problem("the environment variable %q can't be set: %s", keyOnly(key), why)
	}
	for _, key := range keys(s.Headers) {
		if !isToken(key) || strings.ContainsAny(s.Headers[key], "\r\n\x00") {
			problem("the header %q is malformed", keyOnly(key))
		}
	}
	if s.OAuth != nil {
		s.OAuth.validate(problem)
	}
	if s.URL == "" && (s.HeadersHelper != "" || s.OAuth != nil || s.HeaderFunc != nil || s.HTTPClient != nil) {
		problem("headersHelper, HeaderFunc, HTTPClient and oauth go with url")
	}
	if s.StartTimeout < 0 || s.CallTimeout < 0 {
		problem("a timeout is negative")
	}
	return errors.Join(problems...)
}

// unset is the error of references to variables that are not set.
func unset(names []string) error {
	hint := ""
	if slices.Contains(names, hidden) {
		hint = "; … stands for what may be a secret instead of the name of a variable"
	}
	return fmt.Errorf("environment variables not set: %s%s", strings.Join(names, ", "), hint)
}

// validate tells each problem of o.
func (o *OAuth) validate(problem func(format string, args ...any)) {
	if o.ClientMetadataURL != "" {
		if u, err := url.Parse(o.ClientMetadataURL); err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
			problem("the address of the client's metadata in oauth is not an https URL with a path")
		}
	}
	switch o.GrantType {
	case "", "authorization_code":
		if o.PrivateKey != "" {
			problem("the private key in oauth goes with the grant type %s", ClientCredentials)
		}
	case ClientCredentials:
		if o.ClientID == "" || (o.ClientSecret == "") == (o.PrivateKey == "") {
			problem("the grant type %s in oauth wants a client ID, and either a client secret or a private key", ClientCredentials)
		}
	default:
		problem("the grant type in oauth is not known here: want authorization_code or %s", ClientCredentials)
	}
	if o.KeyID != "" && o.PrivateKey == "" {
		problem("the key ID in oauth goes with a private key")
	}
}

// isToken reports whether name is a token of RFC 9110, section 5.6.2.
func isToken(name string) bool {
	const chars = "!#$%&'*+.^_`|~-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && strings.Trim(name, chars) == ""
}

func keys(values map[string]string) []string { return slices.Sorted(maps.Keys(values)) }

func keysOnly(values map[string]string) (names []string) {
	for _, key := range keys(values) {
		names = append(names, keyOnly(key))
	}
	return names
}

// keyOnly returns the part of key that is surely a name. By mistake, a secret may
// follow it.
func keyOnly(key string) string {
	if i := strings.IndexAny(key, "=: \x00") + 1; i > 0 && i < len(key) {
		return key[:i] + "…"
	}
	return key
}
