package config

import (
	"encoding/json"
	"errors"
	"fmt"
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

	addresses []string // URL as it may be written
}

// policies are what a file has of them.
type policies struct {
	denied  policy
	allowed []policy // each of which must allow a server
}

func (p *policies) add(o object) error {
	denied, _, err := parsePolicy(o, "deniedMcpServers", true)
	if err != nil {
		return err
	}
	allowed, given, err := parsePolicy(o, "allowedMcpServers", false)
	if given {
		p.allowed = append(p.allowed, allowed)
	}
	p.denied = append(p.denied, denied...)
	return err
}

// parsePolicy reads a list. If loose, see [addressPatterns].
func parsePolicy(o object, key string, loose bool) (list policy, given bool, err error) {
	raw := o.values[key]
	if kind(raw) == "null" {
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
	for i := range list {
		if entry := &list[i]; entry.URL != nil {
			entry.addresses = addressPatterns(*entry.URL, loose)
		}
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
		if remote && list.concerns(remote) && !clear(e.URL) {
			e.problem(`"deniedMcpServers" and "allowedMcpServers" can't tell addresses whose host has other characters than ASCII: write it in ASCII, or remove these lists`)
			return true
		}
		if e.compared += list.work(e.URL); remote && e.compared > maxSearch {
			e.problem(`"deniedMcpServers" and "allowedMcpServers" have too many addresses for so many servers: remove some`)
			return true
		}
	}
	for _, list := range p.allowed {
		if !list.allows(e.Name, words, remote) {
			return false
		}
	}
	return !p.denied.denies(e.Name, words, remote)
}

// work is what it takes to compare the addresses of p with one, in bytes.
func (p policy) work(address string) int {
	patterns := 0
	for _, entry := range p {
		if entry.URL != nil {
			patterns += len(*entry.URL) + leastWork
		}
	}
	return patterns * (len(address) + leastWork)
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

// allows reports whether an entry allows the server with these words. A list with
// commands allows no command by its name, and so with addresses.
func (p policy) allows(name string, words []string, remote bool) bool {
	byName := !p.concerns(remote)
	return p.has(words, remote, false, func(entry string) bool { return byName && entry == name })
}

// denies reports whether an entry denies it.
func (p policy) denies(name string, words []string, remote bool) bool {
	return p.has(words, remote, true, func(entry string) bool { return strings.EqualFold(entry, name) })
}

// has reports whether an entry is about the server with these words.
func (p policy) has(words []string, remote, loose bool, isName func(string) bool) bool {
	var forms []string
	if remote {
		forms = addressForms(words[0], loose)
	}
	for _, entry := range p {
		switch {
		case entry.Name != nil:
			if isName(*entry.Name) {
				return true
			}
		case entry.Command != nil:
			if !remote && slices.Equal(*entry.Command, words) {
				return true
			}
		case slices.ContainsFunc(forms, func(form string) bool { return rules.MatchAny(entry.addresses, form) }):
			return true
		}
	}
	return false
}
