package tokens

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// maxHolders is how many tokens a file may have.
const maxHolders = 1000

// parseTokens reads a file with one token, or with a JSON object that has several.
func parseTokens(data []byte) ([]*Holder, error) {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 {
		return nil, errors.New("it is empty")
	}
	if trimmed[0] == '[' || trimmed[0] == '"' {
		return nil, errors.New(`it must be one token alone, or a JSON object with "tokens"`)
	}
	if trimmed[0] != '{' {
		if err := checkToken(string(trimmed)); err != nil {
			return nil, err
		}
		return []*Holder{soleHolder(string(trimmed))}, nil
	}
	var file struct {
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := decodeExactly(data, &file, "tokens"); err != nil {
		return nil, err
	}
	if n := len(file.Tokens); n == 0 || n > maxHolders {
		return nil, fmt.Errorf("it has %d tokens, must have 1 to %d", n, maxHolders)
	}
	var list []*Holder
	named := make(map[string]bool)
	had := make(map[[sha256.Size]byte]string)
	for i, raw := range file.Tokens {
		var e tokenEntry
		if err := decodeExactly(raw, &e, "name", "token", "allow", "deny", "operator"); err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		if e.Name == "" || plain.Printable(e.Name, plain.MaxName) != e.Name {
			return nil, fmt.Errorf("token %d needs a name of at most %d printable bytes", i+1, plain.MaxName)
		}
		if named[e.Name] {
			return nil, fmt.Errorf("several tokens have the name %q", e.Name)
		}
		if err := checkToken(e.Token); err != nil {
			return nil, fmt.Errorf("token of %q: %w", e.Name, err)
		}
		h := newHolder(e.Name, e.Token)
		h.Access, h.Operator = mcphybrid.Access{Allow: e.Allow, Deny: e.Deny}, e.Operator
		if other, ok := had[h.sum]; ok {
			return nil, fmt.Errorf("%q and %q have the same token", other, e.Name)
		}
		if err := checkPatterns(e.Allow, e.Deny); err != nil {
			return nil, fmt.Errorf("token of %q: %w", e.Name, err)
		}
		named[e.Name], had[h.sum] = true, e.Name
		list = append(list, h)
	}
	return list, nil
}

type tokenEntry struct {
	Name     string   `json:"name"`
	Token    string   `json:"token"`
	Allow    []string `json:"allow"`
	Deny     []string `json:"deny"`
	Operator bool     `json:"operator"`
}

// decodeExactly decodes an object that may have only these members, each once and none null. A
// deny that is misspelled, or that another one replaces, would permit everything.
func decodeExactly(data []byte, into any, names ...string) error {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return cleanJSONError(data, err)
	}
	if _, err := in.Token(); err != io.EOF {
		return errors.New("there is more after the JSON object")
	}
	if _, twice := text.Fields(data, names...); twice != "" {
		return fmt.Errorf("it has %q more than once", twice)
	}
	members, _ := text.Members(data) // it is well-formed
	for _, m := range members {
		if string(m.Value) == "null" {
			return fmt.Errorf("%q is null: leave it out", strings.ToLower(m.Name))
		}
	}
	return nil
}

// cleanJSONError returns an error of reading data that quotes nothing that may be a token.
func cleanJSONError(data []byte, err error) error {
	syntax, kind := new(json.SyntaxError), new(json.UnmarshalTypeError)
	switch {
	case errors.As(err, &syntax):
		before := data[:min(max(int(syntax.Offset)-1, 0), len(data))]
		return fmt.Errorf("line %d, column %d: it is not JSON", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'))
	case errors.As(err, &kind):
		kind.Value, _, _ = strings.Cut(kind.Value, " ") // behind it is a number as it stands there
		err := text.JSONError(data, kind)
		if kind.Field == "" {
			err = fmt.Errorf("it %w", err)
		}
		return err
	case strings.Contains(err.Error(), "unknown field"):
		return errors.New(`it has an unknown member: known are name, token, allow, deny and operator, in the array "tokens"`)
	}
	return errors.New("it is not a whole JSON object")
}

// checkToken returns an error if no client could send the token.
func checkToken(token string) error {
	if token == "" {
		return errors.New("the token is missing")
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return errors.New("a token has only printable ASCII characters and no space: one token is the whole file, several are in a JSON object")
		}
	}
	return nil
}

// checkPatterns returns an error for a pattern that matches nothing: if it denies, it would
// deny nothing. A list to allow that is there must not be empty, which would allow all.
func checkPatterns(allow, deny []string) error {
	if allow != nil && len(allow) == 0 {
		return errors.New(`"allow" is empty: leave it out to allow everything, or deny "*"`)
	}
	for _, list := range [][]string{allow, deny} {
		for _, pattern := range list {
			if pattern != strings.TrimSpace(pattern) {
				return fmt.Errorf("the pattern %q begins or ends with a space, so it matches nothing", plain.Printable(pattern, plain.MaxName))
			}
			if first, _ := utf8.DecodeRuneInString(pattern); pattern != "" && plain.Unprintable(first) {
				return fmt.Errorf("the pattern %q begins with an invisible character", plain.Printable(pattern, plain.MaxName))
			}
			if pattern == "" || strings.ContainsAny(pattern, `[]\`) {
				return fmt.Errorf("the pattern %q matches nothing: * stands for any characters and ? for one", plain.Printable(pattern, plain.MaxName))
			}
			server, name, slash := strings.Cut(pattern, "/")
			if slash && (server == "" || name == "") && !strings.ContainsAny(name, "/*?") && !strings.ContainsAny(server, "*?") {
				return fmt.Errorf("the pattern %q matches nothing: with a slash, it is for SERVER/NAME, such as github/*", plain.Printable(pattern, plain.MaxName))
			}
		}
	}
	return nil
}
