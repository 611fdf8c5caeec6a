package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/mcphybrid/mcphybrid"
)

// Settings are what the command line says.
type settings struct {
	provider api
	endpoint endpoint
	options  *mcphybrid.Options
	access   mcphybrid.Access
	messages []string // of the user
	limit    int64    // tokens

	end   func() error // reports whether the script reached its end
	close func()
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	config := flags.String("config", "", "the `file` with the mcpServers; without one, a few tools in this process")
	name := flags.String("provider", "openai", "openai or anthropic: what the endpoint speaks")
	modelName := flags.String("model", "", "the `model`; a default for each provider")
	baseURL := flags.String("base-url", "", "the `URL` of another endpoint than the provider's own")
	deny := flags.String("deny", "", "`names` or patterns of tools that must not be used, separated by commas")
	limit := flags.Int64("context", 100_000, "the `tokens` above which the conversation is replaced by a summary")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	p, ok := providers[*name]
	if !ok {
		return nil, fmt.Errorf("there is no provider %q, only openai and anthropic", *name)
	}
	set := &settings{
		provider: p,
		endpoint: endpoint{os.Getenv(p.variables + "_API_KEY"), cmp.Or(*baseURL, os.Getenv(p.variables+"_BASE_URL"), p.url), *modelName},
		options:  demoOptions(),
		messages: flags.Args(),
		limit:    *limit,
		end:      func() error { return nil },
		close:    func() {},
	}
	for name := range strings.SplitSeq(*deny, ",") {
		if name = strings.TrimSpace(name); name != "" {
			set.access.Deny = append(set.access.Deny, name)
		}
	}

	switch alone := set.endpoint.key == "" && *baseURL == ""; {
	case alone && (*config != "" || flags.NArg() > 0):
		return nil, fmt.Errorf("%s_API_KEY is not set; without it, and without -base-url, there is only the script, which has messages and tools of its own", p.variables)
	case alone:
		script := newScript(demoOf(*name)...)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		srv := &http.Server{Handler: script}
		go srv.Serve(l)
		set.endpoint.url = "http://" + l.Addr().String() + "/"
		set.endpoint.model = "" // the script is for the default
		set.messages, set.access, set.limit = demoMessages(), demoAccess, demoLimit
		set.end, set.close = script.End, func() { srv.Close() }
	case flags.NArg() == 0:
		return nil, errors.New("what is the message?")
	case *config != "":
		cfg, err := mcphybrid.LoadConfig(*config)
		if err != nil && len(cfg.Servers) == 0 {
			return nil, err
		}
		if err != nil {
			fmt.Fprintln(stderr, "!", err) // the other servers work
		}
		for _, note := range cfg.Notes {
			fmt.Fprintln(stderr, "!", note)
		}
		set.options = &mcphybrid.Options{Servers: cfg.Servers}
	}
	return set, nil
}
