// Package clients reads the files in which MCP clients keep their servers. It
// brings what each client writes into one form, and says what it left out.
package clients

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Options say how to read a file. Env is required.
type Options struct {
	// Path is where the file is. By it, Parse recognizes the client and finds
	// the workspace. It may be empty.
	Path string

	// Dialect names the client that the file is written for, one of [Dialects].
	// If empty, Parse recognizes it.
	Dialect string

	// Workspace is the folder of the project. If empty, it is the folder of the
	// file, or the one above if that is a dot folder such as .vscode.
	Workspace string

	// Env looks up an environment variable.
	Env func(name string) (value string, ok bool)

	// Input, if not nil, asks the user for a value. Parse asks once for each
	// input of a server that is switched on.
	Input func(Input) (string, error)

	// TOML, if not nil, converts a TOML document to JSON.
	TOML func([]byte) ([]byte, error)
}

// An Input is a value for which a file asks the user.
type Input struct {
	ID          string
	Description string
	Password    bool     // the value is a secret
	Default     string   // what to offer; may be empty
	Choices     []string // the values to choose from; if empty, any
}

// A File is what Parse found.
type File struct {
	Dialect string
	Servers []Server // in the order of the file
	Notes   []string // what has no effect: beside the servers, then server by server
}

// A Server is one server of a file.
type Server struct {
	Name string

	// Disabled says that it is switched off. Err says why it can't be used.
	// With either, all fields below are zero.
	Disabled bool
	Err      error

	Command string
	Args    []string
	Env     map[string]string
	Dir     string

	URL           string
	SSE           bool // the server speaks the older HTTP with SSE
	Headers       map[string]string
	HeadersHelper string // a command that prints further headers as JSON
	OAuth         *OAuth // nil unless the file has settings for signing in

	Allow, Deny []string // tools by name or pattern; no Allow allows all
	Needs       map[string][]string
	Prefix      string
	Eager       bool

	StartTimeout, CallTimeout time.Duration // 0 if not given

	Secrets []string // values of inputs and files in the fields above
}

// OAuth has the settings with which a client signs in to a server. Each may be
// empty.
type OAuth struct {
	ClientID         string
	ClientSecret     string
	RedirectURI      string
	Scopes           []string
	Resource         string // of RFC 8707
	MetadataURL      string // of the authorization server
	AuthorizationURL string
	TokenURL         string
}

// Limits of a file. Real ones have a few kilobytes.
const (
	MaxBytes     = 4 << 20
	maxTOML      = 256 << 10 // the time to parse TOML grows with the square of the tables
	maxSideBytes = 1 << 20   // of another file that it names
	maxServers   = 1000
	maxSwitches  = 1000       // tools that are switched off for all servers; bytes of each
	maxSearch    = 50_000_000 // bytes of all their patterns, times bytes of all names of servers; and so with addresses
	maxNotes     = 100
)

// Load reads the file at o.Path. An error does not name the path.
func Load(o Options) (File, error) {
	data, err := readFile(o.Path, MaxBytes)
	if err != nil {
		return File{}, err
	}
	return Parse(data, o)
}

// Parse reads data, the content of a file. The error is about the file as a whole.
func Parse(data []byte, o Options) (File, error) {
	doc, err := parseDocument(data, &o)
	if err != nil {
		return File{}, err
	}
	r := &reader{document: doc, options: o, answers: make(map[string]answer), more: doc.off.more}
	file := File{Dialect: doc.dialect.name}
	for _, note := range doc.off.notes {
		r.note("%s", note)
	}
	for _, m := range doc.servers {
		file.Servers = append(file.Servers, r.server(m))
	}
	file.Notes = r.notes
	if r.more > 0 {
		file.Notes = append(file.Notes, fmt.Sprintf("there are %d more notes", r.more))
	}
	return file, nil
}

// A reader reads the servers of one document.
type reader struct {
	*document
	options Options
	answers map[string]answer // by the ID of the input
	notes   []string          // at most maxNotes
	more    int               // number of further notes

	compared int // see policy.work; at most maxSearch
}

// note records what has no effect. Nothing in it may be a secret.
func (r *reader) note(format string, args ...any) {
	if len(r.notes) == maxNotes {
		r.more++
		return
	}
	r.notes = append(r.notes, text.Bounded(fmt.Errorf(format, args...)).Error())
}

// readFile returns the content of a file. An error does not name the path.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return data, nil
}

// readSideFile reads a file that the configuration names. It must be a regular one:
// opening a pipe would wait for its writer.
func readSideFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	return readFile(path, maxSideBytes)
}
