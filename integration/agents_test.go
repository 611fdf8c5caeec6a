package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clientTimeout bounds one run of a client, which takes some seconds.
const clientTimeout = 2 * time.Minute

// An agent is a published client with a model. Its package is in a folder of
// its name.
type agent struct {
	name string

	// command returns the program with its arguments, after it has written what
	// the program reads in home. Its folder has the installed package.
	command func(t *testing.T, r agentRun) []string

	env []string
}

// An agentRun is how an agent is to be run.
type agentRun struct {
	folder    string // with node_modules
	home      string
	model     string // URL
	permitted bool   // it may do all without asking

	entry map[string]any    // more of the gateway's entry in its configuration
	files map[string]string // texts by their path in home

	// The gateway: a command, or a URL with the token gatewayToken.
	stdio []string
	url   string
}

const agentPrompt = "Weigh the parcel, then stamp the letter."

var agents = []agent{codex, gemini, qwen, opencode, mcpUse, continueCLI}

var codex = agent{
	name: "codex",
	command: func(t *testing.T, r agentRun) []string {
		var b strings.Builder
		fmt.Fprintf(&b, `model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
wire_api = "responses"
[mcp_servers.gateway]
`, r.model)
		if r.url == "" {
			fmt.Fprintf(&b, "command = %q\nargs = %s\n", r.stdio[0], jsonText(r.stdio[1:]))
		} else {
			fmt.Fprintf(&b, "url = %q\nhttp_headers = { Authorization = %q }\n", r.url, "Bearer "+gatewayToken)
		}
		for _, key := range slices.Sorted(maps.Keys(r.entry)) {
			fmt.Fprintf(&b, "%s = %s\n", key, jsonText(r.entry[key]))
		}
		writeFile(t, b.String(), r.home, ".codex", "config.toml")
		programs := glob(filepath.Join(r.folder, "node_modules/@openai/codex-linux-*/vendor/*/bin/codex"))
		require.Len(t, programs, 1)
		args := []string{programs[0], "exec", "--skip-git-repo-check"}
		if r.permitted {
			args = append(args, "--dangerously-bypass-approvals-and-sandbox")
		}
		return append(args, agentPrompt)
	},
}

var gemini = agent{
	name: "gemini",
	command: func(t *testing.T, r agentRun) []string {
		writeFile(t, geminiSettings(r, "gemini-api-key"), r.home, ".gemini", "settings.json")
		program := filepath.Join(r.folder, "node_modules/@google/gemini-cli/bundle/gemini.js")
		args := []string{"env", "GOOGLE_GEMINI_BASE_URL=" + r.model, "node", program, "--skip-trust", "-m", "gemini-2.5-flash"}
		if r.permitted {
			args = append(args, "--yolo")
		}
		return append(args, "-p", agentPrompt)
	},
}

// Qwen Code began as a copy of Gemini CLI.
var qwen = agent{
	name: "qwen",
	command: func(t *testing.T, r agentRun) []string {
		writeFile(t, geminiSettings(r, "openai"), r.home, ".qwen", "settings.json")
		program := filepath.Join(r.folder, "node_modules/@qwen-code/qwen-code/cli.js")
		args := []string{"env", "OPENAI_MODEL=scripted", "OPENAI_BASE_URL=" + r.model + "/v1", "node", program}
		if r.permitted {
			args = append(args, "--yolo")
		}
		return append(args, "-p", agentPrompt)
	},
}

func geminiSettings(r agentRun, login string) string {
	gateway := map[string]any{"httpUrl": r.url, "headers": gatewayHeaders}
	if r.url == "" {
		gateway = map[string]any{"command": r.stdio[0], "args": r.stdio[1:]}
	}
	maps.Copy(gateway, r.entry)
	return jsonText(map[string]any{
		"security":   map[string]any{"auth": map[string]any{"selectedType": login}},
		"privacy":    map[string]any{"usageStatisticsEnabled": false},
		"telemetry":  map[string]any{"enabled": false},
		"general":    map[string]any{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
		"mcpServers": map[string]any{"gateway": gateway},
	})
}

var opencode = agent{
	name: "opencode",
	command: func(t *testing.T, r agentRun) []string {
		gateway := map[string]any{"type": "remote", "url": r.url, "headers": gatewayHeaders}
		if r.url == "" {
			gateway = map[string]any{"type": "local", "command": r.stdio}
		}
		writeFile(t, jsonText(map[string]any{
			"provider": map[string]any{"scripted": map[string]any{
				"npm":     "@ai-sdk/openai-compatible",
				"options": map[string]any{"baseURL": r.model + "/v1", "apiKey": "none"},
				"models":  map[string]any{"scripted": map[string]any{"tool_call": true}},
			}},
			"model": "scripted/scripted", "small_model": "scripted/scripted",
			"autoupdate": false, "share": "disabled",
			"mcp": map[string]any{"gateway": gateway},
		}), r.home, ".config", "opencode", "opencode.json")
		programs := glob(filepath.Join(r.folder, "node_modules/opencode-linux-*/bin/opencode"))
		require.NotEmpty(t, programs)
		args := []string{programs[0], "run"}
		if r.permitted {
			args = append(args, "--auto")
		}
		return append(args, agentPrompt)
	},
	env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
}

var mcpUse = agent{
	name: "mcp-use",
	command: func(t *testing.T, r agentRun) []string {
		gateway := map[string]any{"url": r.url, "headers": gatewayHeaders}
		if r.url == "" {
			gateway = map[string]any{"command": r.stdio[0], "args": r.stdio[1:]}
		}
		program, err := filepath.Abs(filepath.Join("clients", "mcp-use", "agent.mjs"))
		require.NoError(t, err)
		return []string{"node", program, r.folder, r.model, jsonText(gateway), agentPrompt}
	},
	env: []string{"MCP_USE_ANONYMIZED_TELEMETRY=false"},
}

var continueCLI = agent{
	name: "continue",
	command: func(t *testing.T, r agentRun) []string {
		gateway := map[string]any{"name": "gateway", "type": "streamable-http", "url": r.url, "requestOptions": map[string]any{"headers": gatewayHeaders}}
		if r.url == "" {
			gateway = map[string]any{"name": "gateway", "command": r.stdio[0], "args": r.stdio[1:]}
		}
		config := filepath.Join(r.home, "config.yaml")
		writeFile(t, jsonText(map[string]any{ // which is YAML too
			"name": "test", "version": "1.0.0", "schema": "v1",
			"models": []any{map[string]any{
				"name": "scripted", "provider": "openai", "model": "scripted", "apiBase": r.model + "/v1", "apiKey": "none",
				"roles": []string{"chat"}, "capabilities": []string{"tool_use"},
			}},
			"mcpServers": []any{gateway},
		}), config)
		args := []string{"node", filepath.Join(r.folder, "node_modules/@continuedev/cli/dist/cn.js"), "--config", config}
		if r.permitted {
			args = append(args, "--auto")
		}
		return append(args, "-p", agentPrompt)
	},
}

var gatewayHeaders = map[string]any{"Authorization": "Bearer " + gatewayToken}

func writeFile(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// install returns the folder with the installed package, or skips the test.
func (a agent) install(t *testing.T) (folder string) {
	t.Helper()
	cache, unlock, err := openCache()
	require.NoError(t, err)
	defer unlock()
	folder, err = ensureNPM(cache, a.name, filepath.Join("clients", a.name))
	if err != nil {
		t.Skipf("%s can't be installed: %v", a.name, err)
	}
	return folder
}

// version returns the version of its package.
func (a agent) version(t *testing.T) string {
	t.Helper()
	var manifest struct{ Dependencies map[string]string }
	require.NoError(t, json.Unmarshal([]byte(read(filepath.Join("clients", a.name, "package.json"))), &manifest))
	for name, version := range manifest.Dependencies {
		if strings.Contains(name, a.name) || len(manifest.Dependencies) == 1 {
			return version
		}
	}
	t.Fatalf("clients/%s/package.json: no version", a.name)
	return ""
}

// run runs the agent to its end and returns what it printed.
func (a agent) run(t *testing.T, r agentRun) (output string, err error) {
	t.Helper()
	r.home = t.TempDir()
	work := filepath.Join(r.home, "work")
	require.NoError(t, os.Mkdir(work, 0o755))
	for path, text := range r.files {
		writeFile(t, text, r.home, path)
	}
	args := a.command(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = work
	cmd.Env = append([]string{
		"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.Getenv("TMPDIR"), "LANG=C.UTF-8", "CI=1", "NO_COLOR=1",
		"HTTP_PROXY=" + r.model, "HTTPS_PROXY=" + r.model, "http_proxy=" + r.model, "https_proxy=" + r.model,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
		"OPENAI_API_KEY=none", "GEMINI_API_KEY=none",
	}, a.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w\n%s\n%s", err, tail(errs.String()), tail(out.String()))
	}
	t.Logf("%s: stdout %s\nstderr %s", a.name, tail(out.String()), tail(errs.String()))
	return out.String(), err
}

func tail(text string) string { return text[max(0, len(text)-4000):] }
