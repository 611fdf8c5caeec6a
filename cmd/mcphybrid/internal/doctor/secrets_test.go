package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
)

// Where a secret may stand in an argument, and what is told of it: its key, and never the value.
func TestWhereSecretsStand(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--token=12345678":                      "argument --token",
		"--token=1234567":                       "",
		"--token=/run/12345678":                 "",
		"--token=Bearer 12345678":               "argument --token",
		"token:12345678":                        "argument token",
		"--name=12345678":                       "",
		"--token|12345678":                      "argument --token",
		"--token|1234567":                       "",
		"--token|--12345678":                    "",
		"token|12345678":                        "",
		"--name|12345678":                       "",
		"sk-12345678":                           "argument number 1",
		"x|sk-12345678":                         "argument number 2",
		"--name=sk-12345678":                    "argument --name",
		"=12345678":                             "",
		"https://u:12345678@a.example/":         "argument number 1 password",
		"--db=https://u:12345678@a.example/":    "argument --db password",
		"https://a.example/?token=12345678":     "argument number 1 parameter token",
		"--db=https://a.example/?key=12345678":  "argument --db parameter key",
		"https://a.example/?name=12345678&x=y":  "",
		"-H|Authorization: Bearer 12345678":     "argument Authorization",
		"-e|API_KEY=12345678|--password=123456": "argument API_KEY",
	} {
		c := &checkup{text: args, servers: []mcphybrid.ServerConfig{{Name: "s", Args: strings.Split(args, "|")}}}
		var told []string
		c.plainSecrets(func(server, what string, places ...any) {
			assert.Equal(t, "s", server)
			assert.Equal(t, []any{"S_TOKEN"}, places)
			where, found := strings.CutSuffix(what, " is in the file in plain text")
			assert.True(t, found, what)
			told = append(told, where)
		})
		assert.Equal(t, want, strings.Join(told, ", "), args)
		c.exposed, told = true, nil
		c.plainSecrets(func(_, what string, _ ...any) { told = append(told, what) })
		assert.Equal(t, want != "", strings.HasSuffix(fmt.Sprint(told), "plain text, which others on this machine may read]"), args)
		c.text = "${A}"
		c.plainSecrets(func(_, what string, _ ...any) { assert.Fail(t, "a reference stands for it", what) })
	}
}

func TestIsSecret(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, value string
		want        bool
	}{
		{"API_KEY", "12345678", true},
		{"API_KEY", "1234567", false}, // too short
		{"NAME", "12345678", false},
		{"API_KEY", "/run/key1", false},
		{"API_KEY", "./run/key1", false},
		{"API_KEY", "~/run/key1", false},
		{"API_KEY", "http://a.example", false},
		{"a_pat", "12345678", true},
		{"pattern", "12345678", false},
		{"NAME", "sk-12345678", true},
		{"NAME", "sk-1234567", false}, // the look needs 8 behind it
		{"NAME", "a sk-12345678", false},
	} {
		assert.Equal(t, test.want, isSecret(test.name, test.value), "%s=%s", test.name, test.value)
	}
}

// A variable has the server's name in capitals, with an underscore for whatever is no letter
// or digit of ASCII. A variable that is there keeps its name.
func TestVariable(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "AZAZ09_________TOKEN", variable("azAZ09@[`{/:-é", "header", "Authorization"))
	assert.Equal(t, "my-key", variable("x", "env", "my-key"))
}
