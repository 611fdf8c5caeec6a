// Conformance is a host that the official conformance suite tests as an MCP client. Its last
// argument is the address of a server. It logs in if the server wants that, and calls
// the tools of the scenario, or each tool once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A scenario is what the suite says in the environment.
type scenario struct {
	Name   string `json:"name"`
	Client string `json:"client_id"`
	Secret string `json:"client_secret"`
	Key    string `json:"private_key_pem"`
	Calls  []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"toolCalls"`
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	var s scenario
	if given := os.Getenv("MCP_CONFORMANCE_CONTEXT"); given != "" {
		if err := json.Unmarshal([]byte(given), &s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	s.Name = os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if err := run(ctx, s, os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// published is where the suite pretends that clients publish what they are.
const published = "https://conformance-test.local/client-metadata.json"

func run(ctx context.Context, s scenario, address string) error {
	oauth := &config.OAuth{ClientID: s.Client, ClientSecret: s.Secret, ClientMetadataURL: published}
	if strings.HasPrefix(s.Name, "auth/client-credentials-") {
		oauth.GrantType, oauth.PrivateKey = config.ClientCredentials, s.Key
	}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Servers: []mcphybrid.ServerConfig{{Name: "s", URL: address, OAuth: oauth}},
		Ask:     ask.Options{Hooks: ask.Hooks{Elicit: accept}},
		OpenURL: browse,
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	defer mgr.Close()
	err := mgr.Start(ctx)
	for range 3 {
		if err == nil || !errors.Is(err, mcphybrid.ErrAuthorizationRequired) {
			break
		}
		err = mgr.Login(ctx, "s")
	}
	if err != nil {
		return err
	}
	sess := mgr.NewSession(nil)
	if s.Name == "json-schema-2020-12-preservation" {
		return echoSchema(ctx, sess)
	}
	if s.Name == "json-schema-ref-no-deref" {
		return nil
	}
	if strings.HasPrefix(s.Name, "sep-2640-client-verify-") {
		return useSkills(ctx, sess)
	}
	for _, c := range s.Calls {
		if err := call(ctx, mgr, sess, "mcp_s__"+c.Name, c.Arguments); err != nil {
			return err
		}
	}
	if s.Calls != nil {
		return nil
	}
	for _, t := range sess.Tools() {
		if strings.HasPrefix(t.Name(), "mcp_s__") {
			if err := call(ctx, mgr, sess, t.Name(), required(t.InputSchema())); err != nil {
				return err
			}
		}
	}
	return nil
}

// call calls a tool, and logs in again for scopes that it lacks.
func call(ctx context.Context, mgr *mcphybrid.Manager, sess *mcphybrid.Session, name string, args map[string]any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	for range 4 {
		if _, err = sess.Call(ctx, name, raw); !errors.Is(err, mcphybrid.ErrAuthorizationRequired) {
			break
		}
		if err := mgr.Login(ctx, "s"); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, name, err)
	return nil // a scenario may want it to fail
}

// required returns arguments with each property that a schema requires.
func required(schema json.RawMessage) map[string]any {
	var in struct {
		Properties map[string]struct{ Type any }
		Required   []string
	}
	_ = json.Unmarshal(schema, &in)
	args := make(map[string]any)
	for _, name := range in.Required {
		switch in.Properties[name].Type {
		case "number", "integer":
			args[name] = 5
		case "boolean":
			args[name] = true
		default:
			args[name] = "eu"
		}
	}
	return args
}

// echoSchema gives a schema back as a program that the host hands the tools to gets it.
func echoSchema(ctx context.Context, sess *mcphybrid.Session) error {
	list, err := sess.Export(provider.MCP)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.Name == "mcp_s__json_schema_2020_12_tool" {
			raw, err := json.Marshal(map[string]any{"schema": t.InputSchema})
			if err != nil {
				return err
			}
			_, err = sess.Call(ctx, "mcp_s__json_schema_echo", raw)
			return err
		}
	}
	return errors.New("the tool is not there")
}

// useSkills loads each skill as a model does, and reads its files if that is possible.
func useSkills(ctx context.Context, sess *mcphybrid.Session) error {
	for _, s := range sess.ServerSkills() {
		raw, err := json.Marshal(map[string]any{"name": s.URI, "server": s.Server})
		if err != nil {
			return err
		}
		result, err := sess.Call(ctx, mcphybrid.SkillLoadToolName, raw)
		if fmt.Fprintln(os.Stderr, s.URI, err); err != nil || result.IsError {
			continue
		}
		var listed struct{ Resources []struct{ URI string } }
		if err := json.Unmarshal(s.Raw, &listed); err != nil {
			return err
		}
		for _, file := range listed.Resources {
			if _, err := sess.ReadResource(ctx, s.Server, file.URI); err != nil {
				fmt.Fprintln(os.Stderr, file.URI, err)
			}
		}
	}
	return nil
}

// accept answers a question as a user does who changes nothing.
func accept(_ context.Context, _ ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
	raw, err := json.Marshal(p.RequestedSchema)
	if err != nil {
		return nil, err
	}
	var form struct {
		Properties map[string]struct{ Default any }
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, err
	}
	content := make(map[string]any)
	for name, field := range form.Properties {
		if field.Default != nil {
			content[name] = field.Default
		}
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: content}}, nil
}

// browse is a user who has a session at the authorization server already.
func browse(ctx context.Context, page mcphybrid.LoginPage) (string, error) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page.URL, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	resp.Body.Close()
	return resp.Header.Get("Location"), nil
}
