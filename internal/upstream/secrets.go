package upstream

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"iter"
	"log/slog"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// secrets hides secret values of a server's configuration in texts that the
// server may influence: its errors and log messages. It does not change results
// of tools, which are the server's answer to the model.
type secrets struct {
	values []string // each value in every form it may take in a text; longest first

	mu   sync.Mutex
	late map[string][]string      // by name: values learned since, at most maxLate
	all  atomic.Pointer[[]string] // values and the forms of late, or nil without any
}

// maxLate is how many values of one name are hidden that were learned late, such as
// tokens that rotate.
const maxLate = 16

// Shorter values are not hidden, because they occur in unrelated texts: "true",
// "debug", 8080.
const (
	minSecret = 8 // bytes

	// MinNamedSecret is the least length, in bytes, of a hidden value whose name
	// says that it is a secret. Shorter pieces of a secret are not hidden either.
	MinNamedSecret = 4
)

// secretName matches the name of an option, variable, header or parameter whose
// value is likely a secret.
var secretName = regexp.MustCompile(`(?i)key|token|secret|pass|pwd|auth|cred|cookie|session|bearer|sign?at|\bpat\b|\bsig\b`)

// Masked replaces a secret in a text.
const Masked = "[hidden]"

// newSecrets returns the secrets of cfg:
//
//   - Secrets, OAuth's ClientSecret and PrivateKey, and the values of Env and Headers; of
//     credentials, such as "Bearer x" and "a=b; session=x", each part as well
//   - in Env, Headers and Args, what follows a secretName in JSON and in pairs such
//     as "host=a password=b"
//   - in URLs, also those in Env and Headers, the password, a user name that is
//     likely a token, what HTTP makes of both, the values of the query and parts of
//     the path that look random
//   - in Args, and in Command if it has arguments too, URLs and the values that
//     follow a secretName
//   - in all fields, the values of variables in environ with a secretName, which
//     a ${VAR} in the configuration may have expanded to
func newSecrets(cfg *config.Server, environ []string) *secrets {
	s := new(secrets)
	for _, value := range cfg.Secrets {
		s.addCredentials("secret", value)
	}
	if cfg.OAuth != nil {
		s.addCredentials("secret", cfg.OAuth.ClientSecret)
		s.add("key", cfg.OAuth.PrivateKey)
	}
	for _, values := range []map[string]string{cfg.Env, cfg.Headers} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			s.addCredentials(key, values[key])
		}
	}
	s.addURL(cfg.URL)
	if fields := strings.Fields(cfg.Command); len(fields) > 1 {
		s.addArgs(fields[1:])
	}
	s.addArgs(cfg.Args)
	s.addArgs(strings.Fields(cfg.HeadersHelper))
	given := strings.Join(slices.Concat([]string{cfg.Command, cfg.URL}, cfg.Args, slices.Collect(maps.Values(cfg.Env)), slices.Collect(maps.Values(cfg.Headers))), "\x00")
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if secretName.MatchString(name) && name != "PWD" && name != "OLDPWD" && strings.Contains(given, value) {
			s.addCredentials(name, value)
		}
	}
	s.sort()
	return s
}

func (s *secrets) sort() {
	slices.SortFunc(s.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	s.values = slices.Compact(s.values)
}

// hold adds secrets that were not known at first. Of each name, it keeps the newest.
func (s *secrets) hold(name string, values []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := false
	if s.late[name] == nil && len(s.late) >= maxHeaders {
		name = "secret"
	}
	for _, value := range values {
		if list := s.late[name]; !slices.Contains(list, value) {
			if s.late == nil {
				s.late = make(map[string][]string)
			}
			s.late[name], fresh = append(list[max(0, len(list)-maxLate+1):], value), true
		}
	}
	if !fresh {
		return
	}
	all := &secrets{values: slices.Clone(s.values)}
	for name, list := range s.late {
		for _, value := range list {
			all.addCredentials(name, value)
		}
	}
	all.sort()
	s.all.Store(&all.values)
}

// known returns all forms of all secrets, longest first.
func (s *secrets) known() []string {
	if all := s.all.Load(); all != nil {
		return *all
	}
	return s.values
}

// scheme matches the beginning of credentials of HTTP.
var scheme = regexp.MustCompile(`(?i)^\s*(bearer|basic|token|digest|negotiate|api-?key)\s+`)

// addCredentials adds a value and, if it holds credentials, each part that may be
// used alone: what follows the scheme, the values of cookies and parameters, and
// the user and password of the scheme Basic.
func (s *secrets) addCredentials(name, value string) {
	s.add(name, value)
	s.addParts(value)
	kind := scheme.FindString(value)
	if kind == "" && !secretName.MatchString(name) {
		return
	}
	if kind != "" && !secretName.MatchString(name) {
		name = "credentials"
	}
	rest := value[len(kind):]
	if kind == "" {
		if _, after, ok := strings.Cut(value, " "); ok {
			rest = after
		}
	}
	s.add(name, rest)
	basic := strings.EqualFold(strings.TrimSpace(kind), "basic")
	if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest)); err == nil && basic {
		_, password, _ := strings.Cut(string(plain), ":")
		s.add(name, string(plain))
		s.add(name, password)
	}
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("; ,\t\"", r) }) {
		if _, v, ok := strings.Cut(part, "="); ok {
			s.add(name, v)
		}
	}
}

// A jsonMember is a member with a string, as in {"apiKey": "x"}. A pair is one as in
// host=a password=b.
var (
	jsonMember = regexp.MustCompile(`"([^"\\]+)"\s*:\s*("(?:[^"\\]|\\.)*")`)
	pair       = regexp.MustCompile(`([\w .-]*\w)\s*=\s*([^\s;,&"']+)`)
)

// addParts adds what can be used alone of a value: parts of a URL, and what is named
// like a secret in JSON or in a list of pairs.
func (s *secrets) addParts(value string) {
	s.addURL(value)
	for _, m := range jsonMember.FindAllStringSubmatch(value, -1) {
		if v, ok := text.Unquote(json.RawMessage(m[2])); ok && secretName.MatchString(m[1]) {
			s.addCredentials(m[1], v)
		}
	}
	for _, m := range pair.FindAllStringSubmatch(value, -1) {
		if secretName.MatchString(m[1]) {
			s.add(m[1], m[2])
		}
	}
}

func (s *secrets) addArgs(args []string) {
	for i, arg := range args {
		s.addParts(arg)
		// --key=value, NAME=value, Header: value
		if at := strings.IndexAny(arg, "=:"); at >= 0 {
			name, value := arg[:at], strings.TrimSpace(arg[at+1:])
			if secretName.MatchString(name) && !strings.HasPrefix(value, "//") {
				s.addCredentials(name, value)
			}
			s.addURL(value)
			continue
		}
		if strings.HasPrefix(arg, "-") && secretName.MatchString(arg) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			s.addCredentials(arg, args[i+1])
		}
	}
}

// addURL adds the secrets in text if text is a URL.
func (s *secrets) addURL(text string) {
	if !strings.Contains(text, "://") {
		return
	}
	u, err := url.Parse(text)
	if err != nil {
		s.add("", text)
		return
	}
	if u.User != nil {
		user := u.User.Username()
		password, ok := u.User.Password()
		s.add("password", password)
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding} {
			s.add("password", encoding.EncodeToString([]byte(user+":"+password)))
		}
		if !ok || looksRandom(user) { // a token, as in https://token@host
			s.add("", user)
		}
	}
	for _, pair := range strings.Split(u.RawQuery, "&") { // u.Query would drop malformed pairs
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			key, value = "", pair
		}
		s.add(key, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			s.add(key, plain)
		}
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if looksRandom(part) {
			s.add("", part)
		}
	}
}

func looksRandom(text string) bool { return len(text) >= 16 && strings.ContainsAny(text, "0123456789") }

// add adds a value and each of its lines, in every quoted and unquoted form that
// a text may use. It skips forms that are too short.
func (s *secrets) add(name, value string) {
	least := minSecret
	if secretName.MatchString(name) {
		least = MinNamedSecret
	}
	for _, v := range append(strings.Split(value, "\n"), value) {
		inJSON, _ := json.Marshal(v)
		line := text.Line(v, len(v))
		for _, form := range []string{
			v, strings.TrimSpace(v), line, inner(strconv.Quote(v)), inner(strconv.Quote(line)), inner(string(inJSON)),
			strings.ReplaceAll(inner(string(inJSON)), "/", `\/`), html.EscapeString(v), url.QueryEscape(v), url.PathEscape(v), component.Replace(url.QueryEscape(v)),
		} {
			if len(form) >= least {
				s.values = append(s.values, form, lowerEscapes(form))
			}
		}
	}
}

// component makes of [url.QueryEscape] what encodeURIComponent of JavaScript writes.
var component = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// escape matches a byte in URLs. Its digits are in any case.
var escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

// lowerEscapes returns text, in the same length, with its escapes in lower case.
func lowerEscapes(text string) string { return escape.ReplaceAllStringFunc(text, strings.ToLower) }

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// text returns text with [Masked] in place of secrets, and without addresses of
// this process's memory. Secrets that overlap are hidden together.
func (s *secrets) text(line string) string {
	type span struct{ from, to int }
	var spans []span
	look := func(line string) {
		for _, v := range s.known() {
			for at := range occurrences(line, v[:MinNamedSecret]) {
				rest := line[at:]
				if strings.HasPrefix(rest, v) {
					spans = append(spans, span{at, at + len(v)})
				} else if n := strings.Index(rest[:min(len(rest), len(v)+len("…"))], "…"); n > 0 && strings.HasPrefix(v, rest[:n]) {
					spans = append(spans, span{at, at + n}) // the text was cut within the secret
				}
			}
		}
	}
	look(line)
	if lower := lowerEscapes(line); lower != line {
		look(lower)
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	var b strings.Builder
	end := 0
	for i, p := range spans {
		if i == 0 || p.from >= end {
			b.WriteString(line[end:p.from] + Masked)
		}
		end = max(end, p.to)
	}
	return text.WithoutAddresses(b.String() + line[end:])
}

// in reports whether line has a secret, or would have one without its escapes.
func (s *secrets) in(line string) bool {
	lines := []string{line, lowerEscapes(line)}
	for _, unescape := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		if plain, err := unescape(line); err == nil {
			lines = append(lines, plain)
		}
	}
	return slices.ContainsFunc(s.known(), func(v string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, v) })
	})
}

// occurrences yields where part is in text, overlapping ones too.
func occurrences(text, part string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for from := 0; ; from++ {
			at := strings.Index(text[from:], part)
			if at < 0 || !yield(from+at) {
				return
			}
			from += at
		}
	}
}

// dropRest removes the rest of a secret from the start of text. text is the tail
// of a longer text and may have been cut within a secret.
func (s *secrets) dropRest(text string) string {
	cut := 0
	for _, v := range s.known() {
		if strings.Contains(v, text) {
			return ""
		}
		for n := len(v) - 1; n > max(cut, MinNamedSecret-1); n-- {
			if strings.HasPrefix(text, v[len(v)-n:]) {
				cut = n
				break
			}
		}
	}
	return text[cut:]
}

// error returns err, or a [maskedError] if the text of err has a secret.
func (s *secrets) error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if hidden := s.text(text); hidden != text {
		return &maskedError{err, hidden}
	}
	return err
}

// A maskedError matches the same targets in [errors.Is] as its error but does not
// unwrap to it, because error reporters print wrapped errors.
type maskedError struct {
	err  error
	text string
}

func (e *maskedError) Error() string        { return e.text }
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }

// A secretHandler hides secrets and the URLs of errors in log records of mcp-go. What mcp-go
// informs of is about its connections: it helps only who looks for an error.
type secretHandler struct {
	slog.Handler
	secrets *secrets
}

func (h secretHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, lowered(level))
}

// lowered returns the level of a record of mcp-go.
func lowered(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return min(level, slog.LevelDebug)
	}
	return level
}

func (h secretHandler) Handle(ctx context.Context, r slog.Record) error {
	c := slog.NewRecord(r.Time, lowered(r.Level), h.secrets.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		c.Add(h.hide(a)) // AddAttrs does the same, and nothing else links it
		return true
	})
	return h.Handler.Handle(ctx, c)
}

func (h secretHandler) hide(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(h.secrets.text(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			a.Value = slog.StringValue(h.secrets.text(text.WithoutURL(err).Error()))
		} else {
			a.Value = slog.StringValue(h.secrets.text(fmt.Sprint(v.Any())))
		}
	case slog.KindGroup:
		var group []slog.Attr
		for _, member := range v.Group() {
			group = append(group, h.hide(member))
		}
		a.Value = slog.GroupValue(group...)
	}
	return a
}

func (h secretHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	hidden := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		hidden[i] = h.hide(a)
	}
	return secretHandler{h.Handler.WithAttrs(hidden), h.secrets}
}

func (h secretHandler) WithGroup(name string) slog.Handler {
	return secretHandler{h.Handler.WithGroup(name), h.secrets}
}

// Hide returns err, or an error with [Masked] in place of secrets if the text of
// err has secrets of the server's configuration. The result matches the same
// targets in [errors.Is].
func (s *Server) Hide(err error) error { return s.secrets.error(err) }

// Secrets returns the texts that [Server.Hide] hides: every form of every secret,
// longest first. The caller must not change the slice.
func (s *Server) Secrets() []string { return s.secrets.known() }
