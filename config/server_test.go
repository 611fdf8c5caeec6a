package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// However something of a configuration is printed or logged, its secrets are not shown. Its
// JSON has them.
func TestPrintingShowsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	oauth := OAuth{ClientID: "mine", ClientSecret: secret, PrivateKey: secret, Scopes: []string{"read"}, TokenURL: "https://h/token?key=" + secret}
	child := Server{Name: "child", Command: "run", Args: []string{"--key", secret}, Env: map[string]string{"KEY": secret}, Secrets: []string{secret}}
	remote := Server{Name: "web", URL: "https://ann:" + secret + "@h/" + secret, Headers: map[string]string{"X-Key": secret}, HeadersHelper: "print " + secret, OAuth: &oauth}
	file := File{Servers: []Server{child, remote}, Dialect: "mcphybrid", Notes: []string{"a note"}}
	for _, test := range []struct {
		value any
		shows string
	}{
		{oauth, "mine"}, {&oauth, "mine"}, {child, "child"}, {&child, "child"}, {remote, "web"}, {&remote, "web"}, {file, "web"}, {&file, "web"},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			printed := fmt.Sprintf(verb, test.value)
			assert.NotContains(t, printed, secret, "%T by %s", test.value, verb)
			assert.Contains(t, printed, test.shows, "%T by %s", test.value, verb)
		}
		var log bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			log.Reset()
			slog.New(handler).With("first", test.value).Info("m", "value", test.value, slog.Group("group", "value", test.value))
			assert.NotContains(t, log.String(), secret, "%T by %T", test.value, handler)
			assert.Equal(t, 3, bytes.Count(log.Bytes(), []byte(test.shows)), "%T by %T: %s", test.value, handler, &log)
		}
		data, err := json.Marshal(test.value)
		require.NoError(t, err)
		assert.Contains(t, string(data), secret, "%T", test.value)
	}
	within := struct{ File *File }{&file}
	for _, verb := range []string{"%v", "%+v", "%s", "%q"} {
		assert.NotContains(t, fmt.Sprintf(verb, within), secret, verb)
	}
}

// What is printed says whether there is a secret, since a login fails otherwise without it.
func TestPrintedOAuthSaysWhetherThereIsASecret(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `OAuth client "a" with a secret, scopes ["r"]`, OAuth{ClientID: "a", ClientSecret: "s", Scopes: []string{"r"}}.String())
	assert.Equal(t, `OAuth client "a" with a private key, scopes []`, OAuth{ClientID: "a", PrivateKey: "k"}.String())
	assert.Equal(t, `OAuth client "a" with no secret, scopes []`, OAuth{ClientID: "a"}.String())
}

// A server that is no object is said to be none.
func TestServersThatAreNoObjects(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"5": "number", `"run"`: "string", "[]": "array", "null": "null", "true": "bool"} {
		file, err := Parse([]byte(`{"mcpServers": {"s": `+value+`}}`), "x.json", nil)
		assert.ErrorContains(t, err, `"s"`, value)
		assert.ErrorContains(t, err, "is a JSON "+want+", want an object", value)
		assert.Empty(t, file.Servers)
	}
}

// A URL that can't be read is not shown, nor is a server of this process.
func TestPrintedServers(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `server "a" at ://, headers []`, Server{Name: "a", URL: "http://ann:secret@h/%zz"}.String())
	assert.Equal(t, `server "a" at https://h, headers ["B"]`, Server{Name: "a", URL: "https://ann:secret@h/x?y=z", Headers: map[string]string{"B": "secret"}}.String())
	assert.Equal(t, `server "a" by "run" with 2 arguments, environment ["C"]`, Server{Name: "a", Command: "run secret", Args: []string{"x", "y"}, Env: map[string]string{"C": "secret"}}.String())
	assert.Equal(t, `server "a" in this process`, Server{Name: "a", InProcess: struct{ InProcessServer }{}, Command: "secret"}.String())
}

// A copy has all that a server has, and shares no list, map or object with it.
func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	var s Server
	fill(reflect.ValueOf(&s).Elem(), "first")
	full := golden.Text(s)
	changed := s.Clone()
	assert.Equal(t, full, golden.Text(changed))
	fill(reflect.ValueOf(&changed).Elem(), "other")
	assert.Equal(t, full, golden.Text(s))
	assert.Equal(t, strings.ReplaceAll(full, "first", "other"), golden.Text(changed))
	assert.Equal(t, Server{}, Server{}.Clone())
}

// fill writes a text into all that v has, in place where there is something.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*OAuth]() {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			fill(v.Elem(), text)
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		key, value := reflect.ValueOf("key"), reflect.New(v.Type().Elem()).Elem()
		if had := v.MapIndex(key); had.IsValid() {
			value.Set(had)
		}
		fill(value, text)
		v.SetMapIndex(key, value)
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		fill(v.Index(0), text)
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(7)
	}
}
