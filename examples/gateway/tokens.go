package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// tokenVariable is the environment variable with the bearer token.
const tokenVariable = "MCPHYBRID_GATEWAY_TOKEN"

// A holder is who has a token.
type holder struct {
	name     string // "" for who has the only one
	access   mcphybrid.Access
	operator bool // may see the pages about all clients
	sum      [sha256.Size]byte

	over context.Context // ends when the token is no longer one
	end  context.CancelFunc
}

func newHolder(name, token string) *holder {
	h := &holder{name: name, sum: sha256.Sum256([]byte(token))}
	h.over, h.end = context.WithCancel(context.Background())
	return h
}

// is reports whether h and other have the same token, name and rights.
func (h *holder) is(other *holder) bool {
	return h.sum == other.sum && h.name == other.name && h.operator == other.operator &&
		slices.Equal(h.access.Allow, other.access.Allow) && slices.Equal(h.access.Deny, other.access.Deny)
}

// tokens are all that may call, by one token each. If there are none, everybody may.
type tokens struct {
	holders atomic.Pointer[[]*holder]
}

// readTokens returns the tokens in a file or, without one, the one in the environment.
func readTokens(path string) (*tokens, error) {
	t := new(tokens)
	t.holders.Store(new([]*holder))
	if path == "" {
		if token := os.Getenv(tokenVariable); token != "" {
			t.holders.Store(&[]*holder{soleHolder(token)})
		}
		return t, nil
	}
	return t, t.read(path)
}

// read replaces the tokens by those in a file. Who has the same token, name and rights as
// before is the same holder. The requests of others end. After an error nothing has changed.
func (t *tokens) read(path string) error {
	data, err := readSecret(path)
	if err != nil {
		return fmt.Errorf("-token-file: %w", err)
	}
	list, err := parseTokens(data)
	if err != nil {
		return fmt.Errorf("-token-file: %s: %w", path, err)
	}
	before := *t.holders.Load()
	for i, h := range list {
		if j := slices.IndexFunc(before, h.is); j >= 0 {
			list[i] = before[j]
		}
	}
	t.holders.Store(&list)
	for _, h := range before {
		if !slices.Contains(list, h) {
			h.end()
		}
	}
	return nil
}

// areNeeded reports whether who calls needs one.
func (t *tokens) areNeeded() bool { return len(*t.holders.Load()) > 0 }

// holder returns who has a token, or nil. How long that takes tells nothing of the tokens.
func (t *tokens) holder(token string) (found *holder) {
	got := sha256.Sum256([]byte(token))
	for _, h := range *t.holders.Load() {
		if subtle.ConstantTimeCompare(got[:], h.sum[:]) == 1 {
			found = h
		}
	}
	return found
}

// isCurrent reports whether a holder's token is still one of them. Nobody's is, if none
// is needed.
func (t *tokens) isCurrent(h *holder) bool {
	list := *t.holders.Load()
	return slices.Contains(list, h) || h == nil && len(list) == 0
}

// reportIdle logs the patterns of tokens that match no tool: one to deny is perhaps
// misspelled.
func (g *gateway) reportIdle(t *tokens) {
	for _, h := range *t.holders.Load() {
		s := g.mgr.NewSession(&mcphybrid.SessionOptions{Access: h.access})
		for _, err := range s.Problems() {
			g.opts.log.Warn(err.Error(), "user", h.name)
		}
		s.Close()
	}
}

// bearer returns the token of a request, or "".
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}

type holderKey struct{}

// withHolder returns the context of a request of h, which ends with h's token. release must
// be called after the request.
func withHolder(ctx context.Context, h *holder) (of context.Context, release func()) {
	if h == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, holderKey{}, h))
	stop := context.AfterFunc(h.over, cancel)
	return ctx, func() { stop(); cancel() }
}

// holderOf returns whose request it is, or nil if no token was needed.
func holderOf(ctx context.Context) *holder {
	h, _ := ctx.Value(holderKey{}).(*holder)
	return h
}

// maxHolders is how many tokens a file may have.
const maxHolders = 1000

func soleHolder(token string) *holder {
	h := newHolder("", token)
	h.operator = true
	return h
}

// parseTokens reads a file with one token, or with a JSON object that has several.
func parseTokens(data []byte) ([]*holder, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("it is empty")
	}
	if data[0] != '{' {
		if err := checkToken(string(data)); err != nil {
			return nil, err
		}
		return []*holder{soleHolder(string(data))}, nil
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
	var list []*holder
	named := make(map[string]bool)
	had := make(map[[sha256.Size]byte]string)
	for i, raw := range file.Tokens {
		var e tokenEntry
		if err := decodeExactly(raw, &e, "name", "token", "allow", "deny", "operator"); err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		if e.Name == "" || printable(e.Name, maxLoggedName) != e.Name {
			return nil, fmt.Errorf("token %d needs a name of at most %d printable bytes", i+1, maxLoggedName)
		}
		if named[e.Name] {
			return nil, fmt.Errorf("several tokens have the name %q", e.Name)
		}
		if err := checkToken(e.Token); err != nil {
			return nil, fmt.Errorf("token of %q: %w", e.Name, err)
		}
		h := newHolder(e.Name, e.Token)
		h.access, h.operator = mcphybrid.Access{Allow: e.Allow, Deny: e.Deny}, e.Operator
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
		return cleanJSONError(err)
	}
	if _, err := in.Token(); err != io.EOF {
		return errors.New("there is more after the JSON object")
	}
	if name := text.Repeated(data, names...); name != "" {
		return fmt.Errorf("it has %q more than once", name)
	}
	members, _ := text.Members(data) // it is well-formed
	for _, m := range members {
		if string(m.Value) == "null" {
			return fmt.Errorf("%q is null: leave it out", strings.ToLower(m.Name))
		}
	}
	return nil
}

// cleanJSONError returns an error that quotes nothing that may be a token.
func cleanJSONError(err error) error {
	syntax, kind := new(json.SyntaxError), new(json.UnmarshalTypeError)
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON, at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("%s is a %s, must be a %s", cmp.Or(kind.Field, "it"), kind.Value[:min(len(kind.Value), 6)], kind.Type)
	case strings.Contains(err.Error(), "unknown field"):
		return errors.New(`it has a member that there is not: there are name, token, allow, deny and operator, in the array "tokens"`)
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
				return fmt.Errorf("the pattern %q begins or ends with a space, so it matches nothing", printable(pattern, maxLoggedName))
			}
			if pattern == "" || strings.ContainsAny(pattern, `[]\`) {
				return fmt.Errorf("the pattern %q matches nothing: * stands for any characters and ? for one", printable(pattern, maxLoggedName))
			}
		}
	}
	return nil
}
