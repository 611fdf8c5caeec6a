// Replicas serves one conversation by three replicas that share a store, and loses one of
// them.
//
//	go -C examples/replicas run .
//
// The model is a script: it looks for the tool that the question names and calls it. The
// store is a NATS server in this process; a host has three of them elsewhere.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

func main() {
	log.SetFlags(0)
	folder, err := os.MkdirTemp("", "replicas-")
	if err != nil {
		log.Fatal(err)
	}
	err = show(context.Background(), os.Stdout, folder)
	os.RemoveAll(folder)
	if err != nil {
		log.Fatal("replicas: ", err)
	}
}

func show(ctx context.Context, w io.Writer, folder string) error {
	store, err := startStore(folder, server.RANDOM_PORT)
	if err != nil {
		return err
	}
	defer store.Shutdown()
	desk := mcphybrid.ServerConfig{Name: "desk", InProcess: newDesk(nil)}
	replicas := make([]*replica, 3)
	for i := range replicas {
		nc, err := nats.Connect(store.ClientURL())
		if err != nil {
			return err
		}
		defer nc.Close()
		engine, err := openNATS(ctx, nc)
		if err != nil {
			return err
		}
		if replicas[i], err = newReplica(ctx, fmt.Sprintf("replica %d", i+1), engine, desk, 0); err != nil {
			return err
		}
		defer replicas[i].mgr.Close()
	}

	const id = "alice/17"
	for n := range 6 {
		question := fmt.Sprintf("job_%03d for Alice", 10*n)
		m, err := replicas[n%len(replicas)].answer(ctx, id, n, question)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s\n", m.By, m.Answer)
		if n == 3 {
			fmt.Fprintln(w, "replica 1 is lost")
			replicas[0].mgr.Close()
			replicas = replicas[1:]
		}
	}

	// A client that asks two at once, or asks again, gets one answer.
	var both sync.WaitGroup
	answers, errs := make([]message, len(replicas)), make([]error, len(replicas))
	for i, r := range replicas {
		both.Go(func() { answers[i], errs[i] = r.answer(ctx, id, 6, "job_060 for Alice") })
	}
	both.Wait()
	for i, r := range replicas {
		if errs[i] != nil {
			return errs[i]
		}
		fmt.Fprintf(w, "%s, asked at once, tells the answer of %s\n", r.name, answers[i].By)
	}
	c, _, err := replicas[0].load(ctx, id)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "the store has %d messages\n", len(c.Messages))
	return err
}

// startStore starts a NATS server with JetStream.
func startStore(folder string, port int) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true, JetStream: true, StoreDir: folder})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		return nil, fmt.Errorf("the store does not start")
	}
	return s, nil
}

// jobs is how many tools there are.
const jobs = 200

// newDesk returns an MCP server with tools that say what they were asked. It tells called, if
// that is not nil.
func newDesk(called func(text string)) *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer("desk", "1")
	for i := range jobs {
		name := fmt.Sprintf("job_%03d", i)
		s.AddTool(mcp.NewTool(name, mcp.WithDescription(fmt.Sprintf("Does job %d at the desk", i)), mcp.WithString("text")),
			func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				text := r.GetString("text", "")
				if called != nil {
					called(text)
				}
				return mcp.NewToolResultText(name + " did: " + text), nil
			})
	}
	return s
}
