// Command otel shows how a host traces and counts calls: a middleware makes a span of
// each call, and events become metrics. This example writes both to standard output; any
// OpenTelemetry exporter works.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	spans, err := stdouttrace.New(stdouttrace.WithWriter(w), stdouttrace.WithPrettyPrint())
	if err != nil {
		return err
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	figures, err := stdoutmetric.New(stdoutmetric.WithWriter(w), stdoutmetric.WithPrettyPrint())
	if err != nil {
		return err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(figures)))
	onEvent, err := count(meters.Meter("mcphybrid"))
	if err != nil {
		return err
	}

	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Inline:     mcphybrid.InlineOptions{Max: 1},
		Middleware: []mcphybrid.Middleware{spanOf(traces.Tracer("mcphybrid"))},
		OnEvent:    onEvent,
	})
	defer mgr.Close()
	if err := mgr.AddTools("text", tool("upper", "Returns a text in capitals", strings.ToUpper), tool("trim", "Removes space around a text", strings.TrimSpace)); err != nil {
		return err
	}
	sess := mgr.NewSession(nil)
	for _, call := range [][2]string{
		{mcphybrid.SearchToolName, `{"query": "remove white space"}`},
		{"mcp_text__trim", `{"text": "  hello  "}`},
		{"mcp_text__trim", `{"text": 5}`},
	} {
		result, _ := sess.Call(ctx, call[0], call[1])
		fmt.Fprintln(w, mcp.GetTextFromContent(result.Content[0]))
	}
	if err := traces.Shutdown(ctx); err != nil {
		return err
	}
	return meters.Shutdown(ctx)
}

// spanOf returns a middleware that makes a span of each call that reaches a tool.
func spanOf(tracer trace.Tracer) mcphybrid.Middleware {
	return func(next mcphybrid.Handler) mcphybrid.Handler {
		return func(ctx context.Context, call mcphybrid.ToolCall) (*mcp.CallToolResult, error) {
			ctx, span := tracer.Start(ctx, "execute_tool "+call.Tool.Name(), trace.WithAttributes(
				attribute.String("gen_ai.tool.name", call.Tool.Name()),
				attribute.String("mcp.server", call.Tool.Server()),
			))
			defer span.End()
			result, err := next(ctx, call)
			if err != nil {
				span.SetStatus(codes.Error, err.Error())
			} else if result.IsError {
				span.SetStatus(codes.Error, "the tool answered with an error")
			}
			return result, err
		}
	}
}

// count returns a function that counts events and measures the time of calls and
// searches.
func count(meter metric.Meter) (func(mcphybrid.Event), error) {
	events, err := meter.Int64Counter("mcphybrid.events")
	if err != nil {
		return nil, err
	}
	took, err := meter.Float64Histogram("mcphybrid.duration", metric.WithUnit("s"))
	if err != nil {
		return nil, err
	}
	return func(e mcphybrid.Event) {
		ctx := context.Background()
		kind := metric.WithAttributes(
			attribute.String("kind", string(e.Kind)),
			attribute.String("server", e.Server),
			attribute.Bool("failed", e.Err != nil),
		)
		events.Add(ctx, 1, kind)
		if e.Took > 0 {
			took.Record(ctx, e.Took.Seconds(), kind)
		}
	}, nil
}

func tool(name, description string, f func(string) string) mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.NewTool(name, mcp.WithDescription(description), mcp.WithString("text", mcp.Required())),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(f(r.GetString("text", ""))), nil
		},
	}
}
