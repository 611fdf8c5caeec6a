// Package gateway is one MCP server in front of many, for clients that speak only MCP. It
// lists the first 40 of their tools, and those with which the model finds, describes and calls
// the others and reads on in long results.
//
//	mcphybrid gateway -config mcp.json [-http 127.0.0.1:PORT]
//
// Without -http it serves one client over standard input and output.
package gateway

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/logs"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
)

// Main runs the command and returns its exit status.
func Main(ctx context.Context, args []string, in, out, errs *os.File) int {
	ctx, stop := exit.Signals(ctx)
	defer stop()
	tune()
	return exit.Failed(run(ctx, args, in, out, errs), "gateway", errs)
}

// leastProcs is how many processors Go is told of at least.
const leastProcs = 8

// tune sets what Go can't know of a program that strangers use, unless its environment
// says otherwise.
func tune() {
	if os.Getenv("GOGC") == "" {
		// Clients that attack make as much garbage as they can. So it may be half of what is
		// in use, and not as much.
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < leastProcs {
		// A goroutine that decodes megabytes keeps its processor for 10 ms at a time, at each
		// step of another's small call. With more of them, the kernel decides, and it prefers
		// who has just woken.
		runtime.GOMAXPROCS(leastProcs)
	}
}

// endGrace is how long the last answers may take.
const endGrace = 2 * time.Second

// run serves until ctx ends or, without -http, the input ends.
func run(ctx context.Context, args []string, in io.Reader, out io.WriteCloser, errs io.Writer) error {
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(errs)
	var from servers.Sources
	from.AddFlags(flags)
	follow := flags.String("follow", "", "the `names` of clients, with commas between, that list the tools again when told to; * for all")
	asks := flags.Bool("ask", false, "let servers ask clients for values, pages, a model's answer and roots")
	cache := flags.String("cache", "", "keep the servers' lists in this `file`, and start from it; off for none. By default, it is in the user's cache folder")
	learn := flags.String("learn", "", "have searches prefer tools that were used before, and keep their names in this `file`; for one user, so not with -token-file")
	level := flags.String("log-level", string(mcp.LoggingLevelInfo), "the least `level` of log messages that servers are asked for")
	wait := flags.Duration("wait", defaultWait, "how long after the start a client waits for servers before it is answered without them; it is told when they come")
	grace := flags.Duration("grace", 5*time.Second, "how long running calls may go on when the gateway is told to end; then they are answered with an error")
	address := flags.String("http", "", "serve over HTTP at this `address`, such as 127.0.0.1:8080 or :8080, which is the same")
	var limits limits.Limits
	limits.AddFlags(flags)
	var logs logs.Options
	logs.AddFlags(flags)
	var trust trust.Flags
	trust.AddFlags(flags)
	var front web.Options
	front.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return exit.Unusable(err)
	}
	if flags.NArg() > 0 {
		return exit.Unusable(servers.Unexpected(flags.Arg(0)))
	}
	said := given(flags)
	if err := web.CheckFlags(*address, said); err != nil {
		return exit.Unusable(err)
	}
	if err := limits.Check(); err != nil {
		return exit.Unusable(err)
	}
	learned, err := learning(*learn, front.TokenFile)
	if err != nil {
		return exit.Unusable(err)
	}
	log, lines, err := logs.Open(errs)
	if err != nil {
		return exit.Unusable(err)
	}
	defer lines.Flush(endGrace)
	above, err := ancestry(from.Config)
	if err != nil {
		return err
	}
	source := newSource(from)
	cfg, err := source.load(log)
	if err != nil {
		return err
	}
	opts := gatewayOptions{servers: cfg.Servers, source: source, ancestry: above, learn: learned, ask: *asks, logLevel: mcp.LoggingLevel(*level), wait: *wait, insists: said["wait"], grace: *grace, limits: limits, log: log}
	opts.logCalls, opts.logArguments = logs.Calls, logs.Arguments
	if opts.trust, err = trust.Options(from); err != nil {
		return err
	}
	if !opts.logLevel.ShouldSendTo(mcp.LoggingLevelDebug) {
		return exit.Unusable(fmt.Errorf("-log-level %q: no such level", *level))
	}
	opts.follow = names(*follow)
	if opts.cache, err = cacheStore(*cache, from.Config); err != nil {
		log.Warn("nothing is cached, so a slow server has no tools at first", "error", err)
	}
	opts.tokens = from.TokenStore()
	screen := screenOf(errs, lines)
	opts.onScreen = screen != nil
	var site *web.Site
	if *address != "" {
		if site, err = web.Listen(*address, front); err != nil {
			return err
		}
		announce(log, site, screen != nil)
		opts.guide = guideOf(from)
	}
	g := newGateway(opts)
	defer g.close()
	if screen != nil {
		url, page := "", ""
		if site != nil {
			url, page = site.URL(), site.Page()
		}
		g.showStart(screen, from.Config, url, page)
	}
	if site != nil {
		return g.serveHTTP(ctx, site)
	}
	return g.serveStdio(ctx, in, out)
}

// announce says where the gateway serves, unless a screen does, and who else may press the
// buttons of its page.
func announce(log *slog.Logger, site *web.Site, onScreen bool) {
	if !onScreen {
		log.Info("serving", "url", site.URL(), "token", site.Tokens.AreNeeded())
	}
	if site.Page() == "" {
		return
	}
	if !onScreen {
		log.Info("the page for operators", "url", site.Page())
	}
	if !site.Tokens.AreNeeded() {
		log.Warn("without a token, every program and user of this machine may open the page and press its buttons: set " + tokens.Variable + ", or -token-file")
	}
}

// given returns the names of the flags that the user gave, with whatever value.
func given(flags *flag.FlagSet) map[string]bool {
	names := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
}

// names returns the names in a list with commas between.
func names(list string) (all []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}
