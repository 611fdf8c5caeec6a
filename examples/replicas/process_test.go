package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/stores/pgstore"
	"github.com/nats-io/nats.go"
)

var errNoRole = errors.New("no role")

// role runs this process as what its parent has started it as, if it has.
func role(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "as-replica":
		return runReplica(args[1], args[2])
	case len(args) == 3 && args[0] == "as-store":
		port, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return runStore(args[1], port)
	case len(args) == 3 && args[0] == "as-line":
		return runLine(args[1], args[2])
	}
	return errNoRole
}

// runStore runs a store until its input ends. It prints its URL.
func runStore(folder string, port int) error {
	s, err := startStore(folder, port)
	if err != nil {
		return err
	}
	fmt.Println(s.ClientURL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// runLine carries connections to a store that is not ours to kill, until its input ends. It
// prints the store's URL by way of here.
func runLine(storeURL, port string) error {
	to, err := url.Parse(storeURL)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strings.TrimPrefix(port, "-")))
	if err != nil {
		return err
	}
	far := to.Host
	to.Host = l.Addr().String()
	fmt.Println(to)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	for {
		near, err := l.Accept()
		if err != nil {
			return nil
		}
		go func() {
			defer near.Close()
			there, err := net.Dial("tcp", far)
			if err != nil {
				return
			}
			defer there.Close()
			go func() {
				_, _ = io.Copy(there, near)
				there.Close()
			}()
			_, _ = io.Copy(near, there)
		}()
	}
}

// schemaVariable names the schema of a test in PostgreSQL, for its processes.
const schemaVariable = "REPLICAS_SCHEMA"

// These tell a replica which version of states it writes, and that it keeps no parts of them.
const (
	versionVariable = "REPLICAS_STATE_VERSION"
	wholeVariable   = "REPLICAS_WHOLE_STATES"
)

// withoutParts is an engine whose states have all themselves.
type withoutParts struct{ engine }

func (withoutParts) Parts() store.Parts { return nil }

// openStore opens the engine that a URL is of, for a replica whose process ends with it.
func openStore(ctx context.Context, storeURL string) (engine, error) {
	if strings.HasPrefix(storeURL, "postgres") {
		pool, err := pgxpool.New(ctx, storeURL)
		if err != nil {
			return nil, err
		}
		return pgstore.Share(ctx, pool, &pgstore.SharedOptions{Schema: os.Getenv(schemaVariable), LeaseTime: leaseTime})
	}
	nc, err := nats.Connect(storeURL, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return openNATS(ctx, nc)
}

// A turn is a request: the question is message Number of the conversation.
type turn struct {
	Conversation string `json:"conversation"`
	Number       int    `json:"number"`
	Question     string `json:"question"`
}

// runReplica answers turns over HTTP until its input ends. It prints its URL.
func runReplica(storeURL, deskURL string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	engine, err := openStore(ctx, storeURL)
	if err != nil {
		return err
	}
	version, _ := strconv.Atoi(os.Getenv(versionVariable)) // 0 if it is not set
	if os.Getenv(wholeVariable) != "" {
		engine = withoutParts{engine}
	}
	r, err := newReplica(ctx, strconv.Itoa(os.Getpid()), engine, mcphybrid.ServerConfig{Name: "desk", URL: deskURL}, version)
	if err != nil {
		return err
	}
	defer r.mgr.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /turn", func(w http.ResponseWriter, req *http.Request) {
		var t turn
		if err := json.NewDecoder(req.Body).Decode(&t); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m, err := r.answer(req.Context(), t.Conversation, t.Number, t.Question)
		tell(w, m, err)
	})
	mux.HandleFunc("GET /conversation", func(w http.ResponseWriter, req *http.Request) {
		c, _, err := r.load(req.Context(), req.FormValue("id"))
		tell(w, c, err)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		web.Close()
	}()
	fmt.Printf("http://%s\n", l.Addr())
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// tell answers with 409 what must never happen, and with 503 what another try may mend.
func tell(w http.ResponseWriter, v any, err error) {
	switch {
	case errors.Is(err, errLost):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		_ = json.NewEncoder(w).Encode(v)
	}
}

// A process is this test in another role. It ends when its parent does.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer // kept open, since the process ends when it closes
	ended chan struct{}

	mu  sync.Mutex
	url string // that it prints when it is ready
}

// begin starts a process.
func begin(args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return program{path: self}.begin(args...)
}

// A program is this test, or that of another version.
type program struct {
	path string
	env  []string // beside that of this process
}

func (of program) begin(args ...string) (_ *process, err error) {
	p := &process{cmd: exec.Command(of.path, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), of.env...)
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		p.mu.Lock()
		p.url = strings.TrimSpace(line)
		p.mu.Unlock()
		_, _ = io.Copy(io.Discard, lines)
		_ = p.cmd.Wait()
		p.mu.Lock()
		p.url = ""
		p.mu.Unlock()
	}()
	return p, nil
}

// at returns the URL of a process that is ready, or "".
func (p *process) at() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// kill ends the process as kill -9 does, and waits for that.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.ended
}
