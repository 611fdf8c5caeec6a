package upstream

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
)

// Which texts are hidden and which are not.
func TestHidden(t *testing.T) {
	s := newSecrets(&config.Server{
		Secrets: []string{"a-note"},
		Command: "tool", Args: []string{"--key", "abcd", "--verbose", "plainvalue", "--color=always", "--token=xyz", "https://h/?a=12345678"},
		Env: map[string]string{"DEBUG": "true", "PORT": "8080", "TOKEN": "t0ken", "NAME": "very-long", "SHORT_KEY": "abc"},
	}, []string{"MY_SECRET=plainvalue", "OTHER_SECRET=unused-here", "PWD=tool"})
	for in, want := range map[string]string{
		"abcd and plainvalue":    "[hidden] and [hidden]",
		"true 8080 abc xyz tool": "true 8080 abc xyz tool",
		"a t0ken, very-longer":   "a [hidden], [hidden]er",
		"always unused-here":     "always unused-here",
		"12345678":               "[hidden]",
		"of a-note":              "of [hidden]",
	} {
		assert.Equal(t, want, s.text(in))
	}
	assert.Equal(t, " and more", s.dropRest("y-long and more"))
	assert.Equal(t, "ong and more", s.dropRest("ong and more"), "too short to tell")
	assert.Equal(t, "", s.dropRest("ery-lo"), "within one")
	assert.Equal(t, "[hidden]… [hidden]… plai", s.text("t0ke… plainval… plai"), "a text that was cut")
	assert.Equal(t, "[hidden][hidden], [hidden]", s.text("t0kent0ken, very-long"))
	var none error
	assert.NoError(t, s.error(none))
	err := fmt.Errorf("t0ken: %w", io.ErrUnexpectedEOF)
	assert.EqualError(t, s.error(err), "[hidden]: unexpected EOF")
	assert.ErrorIs(t, s.error(err), io.ErrUnexpectedEOF)
	assert.Equal(t, io.EOF, s.error(io.EOF))
}

// FuzzHidden hides secrets wherever they are in a text, and changes nothing else.
func FuzzHidden(f *testing.F) {
	f.Add("abcdefgh", "efghijkl", "x abcdefghijkl y")
	f.Add("aaaaaaaa", "aaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaa…")
	f.Add("…………", "secret-1", "secret…secret-1………………")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		s := newSecrets(&config.Server{Headers: map[string]string{"A": a, "B": b}}, nil)
		hidden := s.text(text)
		found := false
		for _, v := range s.values {
			found = found || strings.Contains(text, v)
			if len(v) >= 8 && !strings.Contains(Masked, v) {
				for _, part := range strings.Split(hidden, Masked) {
					assert.NotContains(t, part, v)
				}
			}
		}
		if found {
			assert.Contains(t, hidden, Masked)
		}
		if !strings.Contains(text, "…") && !found && !strings.Contains(text, "0x") {
			assert.Equal(t, text, hidden)
		}
	})
}

// Of each name, the newest sixteen values are hidden, and each once. Beyond 64 names, the rest share
// one.
func TestLateSecrets(t *testing.T) {
	t.Parallel()
	s := new(secrets)
	value := func(i int) string { return fmt.Sprintf("secret-number-%03d", i) }
	for i := range maxLate {
		s.hold("token", []string{value(i), value(i)})
	}
	assert.True(t, s.in(value(0)))
	assert.Len(t, s.late["token"], maxLate)
	s.hold("token", []string{value(maxLate)})
	assert.False(t, s.in(value(0)))
	assert.True(t, s.in(value(1)))
	assert.True(t, s.in(value(maxLate)))
	s.hold("other", []string{value(500)})
	assert.True(t, s.in(value(1)), "another name's")
	for i := range 2 * maxHeaders {
		s.hold(fmt.Sprint("name", i), []string{value(100 + i)})
	}
	assert.Len(t, s.late, maxHeaders+1)
	assert.True(t, s.in(value(100+maxHeaders-3)), "it has its own name")
	assert.True(t, s.in(value(100+2*maxHeaders-1)))
	assert.False(t, s.in(value(100+maxHeaders)), "one of many of that name")
}

// mcp-go's log of a server has none of its secrets, wherever they stand.
func TestLogsAreHidden(t *testing.T) {
	srv := newTest(t, config.Server{Name: "web", URL: "http://h/mcp?key=abcdefgh", Headers: map[string]string{"X-Key": "ijklmnop"}}, config.Limits{})
	var b strings.Builder
	log := slog.New(secretHandler{slog.NewJSONHandler(&b, nil), srv.secrets})
	log.With("a", "ijklmnop").WithGroup("g").Error("it said abcdefgh", "err", &url.Error{Op: "Get", URL: "http://other/", Err: errors.New("ijklmnop")},
		slog.Group("h", "b", "abcdefgh", "n", 7), "list", []string{"abcdefgh"})
	log.Info("listening to server forever")
	assert.NotContains(t, b.String(), "forever", "this helps nobody who only reads how it goes")
	for _, secret := range append(srv.Secrets(), "http://other/") {
		assert.NotContains(t, b.String(), secret)
	}
	for _, want := range []string{`"msg":"it said [hidden]"`, `"a":"[hidden]"`, `"g":{"err":"[hidden]"`, `"h":{"b":"[hidden]","n":7}`, `"list":"[[hidden]]"`} {
		assert.Contains(t, b.String(), want)
	}
	assert.Subset(t, srv.Secrets(), []string{"abcdefgh", "ijklmnop"})
	assert.EqualError(t, srv.Hide(errors.New("ijklmnop?")), "[hidden]?")
}

// A secret is hidden in each form in which an error may quote it: the token of
// a header alone, and the password of a URL as basic authentication sends it.
// If one secret begins with another, the longer one is hidden whole.
func TestHiddenForms(t *testing.T) {
	s := newSecrets(&config.Server{
		URL: "http://ann:pass-word@h/", Headers: map[string]string{"Authorization": "Bearer tok-12345678", "Proxy-Authorization": "Basic Ym9iLTEyMzQ6a2V5LTU2Nzg=", "X-Api-Key": "Custom cus-12345678"},
		Env: map[string]string{"A_KEY": "abcdefgh", "B_KEY": "abcdefgh-and-more", "C_KEY": "q/r+s"},
	}, nil)
	for in, want := range map[string]string{
		"invalid token tok-12345678":       "invalid token [hidden]",
		"abcdefgh-and-more, abcdefgh":      "[hidden], [hidden]",
		"Basic YW5uOnBhc3Mtd29yZA== is no": "Basic [hidden] is no",
		"bob-1234:key-5678, key-5678":      "[hidden], [hidden]",
		"cus-12345678 is old":              "[hidden] is old",
		"?key=q%2Fr%2Bs, ?key=q%2fr%2bs":   "?key=[hidden], ?key=[hidden]",
	} {
		assert.Equal(t, want, s.text(in))
	}
}

// What stands within a value is hidden alone too: servers are given whole
// connection strings and JSON, and complain of the password in them.
func TestHiddenParts(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"Authorization": "Bearer tok-12345678", "Version": "1"}`: "tok-12345678",
		`{"a": {"apiKey":"k\u0065y-1234"}}`:                        "key-1234",
		"postgres://ann:pass-word@db/x":                            "pass-word",
		"host=db user=ann password=pass-word":                      "pass-word",
		"AccountName=ann;AccountKey=pass+word==;Suffix=x":          "pass+word==",
		`--config={"apiKey":"key-1234"}`:                           "key-1234",
		"User ID=ann;Password=pw-1":                                "pw-1",
		"db://ann:pass%zzword@db/x":                                "db://ann:pass%zzword@db/x", // not a URL that can be read
	} {
		for _, cfg := range []config.Server{{Env: map[string]string{"SETTINGS": given}}, {Args: []string{"--settings", given}}} {
			assert.Equal(t, "refused: [hidden]", newSecrets(&cfg, nil).text("refused: "+want), given)
		}
	}
	s := newSecrets(&config.Server{Args: []string{"host=db user=ann password=pass-word"}}, nil)
	assert.Equal(t, "no user ann at db", s.text("no user ann at db"))
}

// Secrets that come later are hidden too. Those of one name don't drive out those of
// another, and there are at most so many.
func TestHeldSecretsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSecrets(new(config.Server), nil)
	s.hold("first", []string{"first-value"})
	for i := range 4 * 64 {
		s.hold("second", []string{fmt.Sprintf("second-%04d", i)})
	}
	assert.Equal(t, "[hidden]", s.text("first-value"))
	assert.Equal(t, "[hidden]", s.text(fmt.Sprintf("second-%04d", 4*64-1)))
	assert.Less(t, len(s.known()), 2*64)
	for i := range 2 * 64 {
		s.hold(fmt.Sprint("name ", i), []string{fmt.Sprintf("third-%04d", i)})
	}
	assert.LessOrEqual(t, len(s.late), 64+1)
	assert.Equal(t, "[hidden] [hidden]", s.text(fmt.Sprintf("first-value third-%04d", 2*64-1)))
}

// Secrets are hidden in the escapes of other languages, too.
func TestHiddenEscapes(t *testing.T) {
	t.Parallel()
	for secret, forms := range map[string][]string{
		"ab/cd:ef+gh":     {"ab%2Fcd%3aef%2bgh", `ab\/cd:ef+gh`},
		"p@ss(word)!/x y": {"p%40ss(word)!%2Fx%20y", "p%40ss(word)!%2fx%20y"},
		"it's&<secret>":   {"it&#39;s&amp;&lt;secret&gt;"},
	} {
		s := newSecrets(&config.Server{Secrets: []string{secret}}, nil)
		for _, form := range forms {
			assert.Equal(t, "no [hidden]!", s.text("no "+form+"!"), form)
		}
		assert.Less(t, len(s.values), 32)
	}
	s := newSecrets(&config.Server{Secrets: []string{"quite/secret:value/x"}}, nil)
	assert.True(t, s.in("quite%2fsecret:value/x"))
	assert.False(t, s.in("quite%2fopen:value/x"))
}

// A query without a name is a secret as a whole, and each value of one with names, as it is
// written and as it is meant.
func TestSecretsInQueries(t *testing.T) {
	t.Parallel()
	for query, secret := range map[string]string{
		"a-long-token": "a-long-token", "x=1&another-token": "another-token", "key=abcd": "abcd", "page=12345678": "12345678", "q=a%2Fb%2Fc%2Fd1": "a/b/c/d1", "q=a%2Fb%2Fc%2Fe": "a%2Fb%2Fc%2Fe",
	} {
		assert.True(t, newSecrets(&config.Server{URL: "https://h/mcp?" + query}, nil).in("it is "+secret+"."), query)
	}
	s := newSecrets(&config.Server{URL: "https://h/mcp?page=2&key=abc"}, nil)
	assert.False(t, s.in("page 2 of key abc"), "too short to be one")
}
