// Package loopback serves HTTP for the servers of the tests.
package loopback

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

// Serve listens on a free port of 127.0.0.1 and prints its URL. It ends the process when
// standard input ends.
func Serve(handler http.Handler) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(http.Serve(listener, handler))
}
