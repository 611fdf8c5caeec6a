package debug_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/debug"
)

// A host serves the pages beside its own, behind its own access control.
func ExampleHandler() {
	s := server.NewMCPServer("clock", "1.0")
	s.AddTool(mcp.NewTool("time", mcp.WithDescription("Tells the time")), nil)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Servers: []mcphybrid.ServerConfig{{Name: "clock", InProcess: s}},
	})
	defer mgr.Close()
	if err := mgr.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/mcp", debug.Handler(mgr))

	// A browser asks for the page.
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/debug/mcp", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output:
	// 200 text/html; charset=utf-8
}
