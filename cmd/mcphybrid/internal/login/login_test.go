package login

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { commandtest.Main(m) }

var login = commandtest.Command(run)

func authority(t *testing.T) *mcptest.Authority {
	return mcptest.NewAuthority(t, server.NewStreamableHTTPServer(mcptest.Server("web", mcptest.Echo("echo", "Echoes"))))
}

// browsing runs the command beside a person who opens the pages that it prints.
func browsing(t *testing.T, args ...string) (stdout string, pages []string, err error) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "http://") {
				pages = append(pages, lines.Text())
				mcptest.Browse(t, lines.Text())
			}
		}
	}()
	err = run(t.Context(), args, out, w)
	require.NoError(t, w.Close())
	<-done
	printed, readErr := os.ReadFile(out.Name())
	require.NoError(t, readErr)
	return string(printed), pages, err
}

// All servers that want a login get one, and no others; the next run finds the tokens.
func TestLogin(t *testing.T) {
	one, two := authority(t), authority(t)
	open := mcptest.ServeHTTP(t, server.NewStreamableHTTPServer(mcptest.Server("open", mcptest.Echo("echo", "Echoes"))), "127.0.0.1:0")
	config := commandtest.Config(t, fmt.Sprintf(`"one": {"url": %q}, "open": {"url": %q}, "two": {"url": %q}, "child": {"command": "no-such-program"}`,
		one.Server, open, two.Server))
	args := []string{"-config", config, "-tokens", t.TempDir()}
	stdout, pages, err := browsing(t, args...)
	require.NoError(t, err)
	assert.Equal(t, "one: logged in\ntwo: logged in\n", stdout)
	assert.Len(t, pages, 2)

	stdout, pages, err = browsing(t, args...)
	require.NoError(t, err)
	assert.Equal(t, "no server wants a login\n", stdout)
	assert.Empty(t, pages)

	stdout, pages, err = browsing(t, append(args, "two")...)
	require.NoError(t, err, "as another user, perhaps")
	assert.Equal(t, "two: logged in\n", stdout)
	assert.Len(t, pages, 1)
}

// What fails is told of each server, and does not keep the command from the others.
func TestLoginFails(t *testing.T) {
	a := authority(t)
	config := commandtest.Config(t, fmt.Sprintf(`"child": %s, "web": {"url": %q}, "off": {"url": %[2]q, "disabled": true}, "bad": {"url": 5}`,
		commandtest.Child(t, "1"), a.Server))
	args := []string{"-config", config, "-tokens", t.TempDir()}
	stdout, _, err := browsing(t, append(args, "web", "child")...)
	assert.EqualError(t, err, "1 of 2 logins failed")
	assert.Equal(t, 1, exit.Status(err))
	assert.Equal(t, "child: it has no URL\nweb: logged in\n", stdout)

	for name, status := range map[string]int{"none": 1, "off": 1, "-nonsense": 2} {
		stdout, _, err := login.Run(t, append(args, name)...)
		assert.ErrorContains(t, err, strings.TrimPrefix(name, "-"))
		assert.Equal(t, status, exit.Status(err), name)
		assert.Empty(t, stdout)
	}
	_, _, err = login.Run(t, "-config", "nowhere.json")
	assert.ErrorContains(t, err, "nowhere.json: no such file")
}

// Without a folder for logins, nobody is asked to log in.
func TestLoginWithoutAFolder(t *testing.T) {
	for _, name := range []string{"XDG_CONFIG_HOME", "AppData", "HOME"} {
		t.Setenv(name, "")
	}
	stdout, stderr, err := login.Run(t, "-config", commandtest.Config(t, `"web": {"url": "http://127.0.0.1:9"}`))
	assert.EqualError(t, err, "there is no folder to keep logins in: name one with -tokens")
	assert.Equal(t, 2, exit.Status(err))
	assert.Empty(t, stdout+stderr)
}

// A server that is down does not say whether it wants a login. What is wrong is told, such as a
// folder of logins that can't be used.
func TestServersThatAreDown(t *testing.T) {
	a := authority(t)
	config := commandtest.Config(t, fmt.Sprintf(`"web": {"url": %q}`, a.Server))
	noFolder := commandtest.WriteFile(t, "tokens", "")
	stdout, _, err := login.Run(t, "-config", config, "-tokens", noFolder)
	require.NoError(t, err)
	assert.Contains(t, stdout, "web is down: ")
	assert.Contains(t, stdout, "tokens")
	assert.Contains(t, stdout, "\nno other server wants a login\n")
}

// In a folder where nothing can be written, nobody is sent to a page in vain.
func TestLoginThatCanNotBeSaved(t *testing.T) {
	config := commandtest.Config(t, fmt.Sprintf(`"web": {"url": %q}`, authority(t).Server))
	unwritable := commandtest.Unwritable(t)
	stdout, pages, err := browsing(t, "-config", config, "-tokens", unwritable)
	assert.ErrorContains(t, err, "no login can be saved in "+unwritable+": ")
	assert.ErrorContains(t, err, "name another folder with -tokens")
	assert.Equal(t, 1, exit.Status(err))
	assert.Empty(t, stdout)
	assert.Empty(t, pages)
}

// A server that refuses requests but has no authorization server offers no login: a token in its
// headers helps.
func TestServersWithoutALogin(t *testing.T) {
	refuses := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusNotFound
		if strings.HasSuffix(r.URL.Path, "/mcp") {
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
	}), "127.0.0.1:0")
	config := commandtest.Config(t, fmt.Sprintf(`"x": {"url": %q}`, strings.TrimSuffix(refuses, "/mcp")+"/mcp"))
	stdout, _, err := login.Run(t, "-config", config, "-tokens", t.TempDir())
	assert.EqualError(t, err, "1 of 1 logins failed")
	assert.Contains(t, stdout, `x: the server offers no login: put a token into its headers, in the form "headers": {"Authorization": "Bearer ${TOKEN}"}: registering as a client: `)
	assert.Contains(t, stdout, "404")
}
