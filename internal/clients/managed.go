package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A policy is a list of servers by which an administrator of Claude Code denies or
// allows them. Each entry has one of three keys.
type policy []struct {
	Name    *string   `json:"serverName"`
	Command *[]string `json:"serverCommand"` // the command and all its arguments
	URL     *string   `json:"serverUrl"`     // * stands for any characters
}

// policies are what a file has of them.
type policies struct {
	denied  policy
	allowed []policy // each of which must allow a server
}

func (p *policies) add(o object) error {
	denied, _, err := parsePolicy(o, "deniedMcpServers")
	if err != nil {
		return err
	}
	allowed, given, err := parsePolicy(o, "allowedMcpServers")
	if given {
		p.allowed = append(p.allowed, allowed)
	}
	p.denied = append(p.denied, denied...)
	return err
}

func parsePolicy(o object, key string) (list policy, given bool, err error) {
	raw := o.values[key]
	if len(raw) == 0 || string(raw) == "null" {
		return nil, false, nil
	}
	var entries []json.RawMessage
	err = json.Unmarshal(raw, &entries)
	for _, entry := range entries {
		one, bad := parseObject(entry)
		if bad != nil || len(one.names) != 1 || !slices.Contains([]string{"serverName", "serverCommand", "serverUrl"}, one.names[0]) || string(one.values[one.names[0]]) == "null" {
			err = errors.New("wrong entry")
		}
	}
	if err != nil || json.Unmarshal(raw, &list) != nil {
		return nil, true, fmt.Errorf(`%q: want a list of objects with one of "serverName", "serverCommand" and "serverUrl"`, key)
	}
	if len(list) > maxSwitches || len(raw) > maxSwitches*maxSwitches {
		return nil, true, fmt.Errorf("%q has more than %d entries, or is longer than %d bytes", key, maxSwitches, maxSwitches*maxSwitches)
	}
	return list, true, nil
}

// permitted reports whether the policies permit the server. They can't be applied if
// the server's command or address has references.
func (e *entry) permitted() bool {
	p := e.off.policies
	words, remote := append([]string{e.Command}, e.Args...), e.Command == ""
	if remote {
		words = []string{e.URL}
	}
	for _, list := range append(slices.Clip(p.allowed), p.denied) {
		if list.concerns(remote) && slices.ContainsFunc(words, e.dialect.refers) {
			e.problem(`"deniedMcpServers" and "allowedMcpServers" can't tell commands and addresses with references: write them out, or remove these lists`)
			return true
		}
	}
	for _, list := range p.allowed {
		// A list with commands allows no command by its name, and so with addresses.
		if !list.has(e.Name, !list.concerns(remote), words, remote) {
			return false
		}
	}
	return !p.denied.has(e.Name, true, words, remote)
}

// concerns reports whether p has addresses, or else commands.
func (p policy) concerns(addresses bool) bool {
	for _, entry := range p {
		if addresses && entry.URL != nil || !addresses && entry.Command != nil {
			return true
		}
	}
	return false
}

// has reports whether an entry is about the server with these words.
func (p policy) has(name string, byName bool, words []string, remote bool) bool {
	for _, entry := range p {
		switch {
		case entry.Name != nil:
			if byName && *entry.Name == name {
				return true
			}
		case entry.Command != nil:
			if !remote && slices.Equal(*entry.Command, words) {
				return true
			}
		case remote:
			pattern, address := strings.ToLower(*entry.URL), plainURL(words[0])
			if rules.Match(pattern, strings.ToLower(words[0])) || rules.Match(pattern, address) || rules.Match(plainPattern(pattern), address) {
				return true
			}
		}
	}
	return false
}

// plainURL returns the address in lower case, without what does not count.
func plainURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.User, u.Host = nil, strings.ToLower(u.Host)
	if port := ":" + u.Port(); u.Scheme == "https" && port == ":443" || u.Scheme == "http" && port == ":80" {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return strings.ToLower(u.String())
}

// plainPattern returns the pattern of an address without the port that its scheme
// implies, as plainURL does.
func plainPattern(pattern string) string {
	for scheme, port := range map[string]string{"https://": ":443", "http://": ":80"} {
		if host, ok := strings.CutPrefix(pattern, scheme); ok {
			host, path, _ := strings.Cut(host, "/")
			return scheme + strings.TrimSuffix(host, port) + "/" + path
		}
	}
	return pattern
}
