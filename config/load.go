// Package config declares how a host describes an MCP server, and what servers may take
// and send ([Limits]), and reads the files in which MCP clients keep their servers. It
// brings what each client writes into one form, and tells what it left out.
//
// The package mcphybrid uses the servers. Manager, Session, CollisionError and the
// Options of a Manager are there.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// Options say how to read a file. The zero value is the default.
type Options struct {
	// Dialect names the client for which the file is written: claude-desktop,
	// claude-code, cursor, windsurf, cline, cherry-studio, gemini, continue, goose,
	// amp, vscode, zed, opencode, crush, codex, or mcphybrid for none of them. mcpb is
	// for the manifest.json of a bundle, registry for a server.json. If empty, it is
	// recognized by the path, by where the servers are, and by keys that only one
	// client has.
	Dialect string

	// Workspace is the folder of the project, for ${workspaceFolder}. If empty,
	// it is the folder of the file, or the one above if that is a dot folder
	// such as .vscode. Of the projects in a .claude.json, the default is that of
	// the working directory.
	Workspace string

	// Input asks the user for a value, for ${input:…}, and for what a bundle or a
	// server.json leaves to the user. It is called once for each input of a server
	// that is switched on and has no other problem. If nil, servers with inputs are
	// problems.
	Input func(Input) (string, error)
}

// An Input is a value for which a file asks the user.
type Input struct {
	ID          string
	Description string   // for the user
	Password    bool     // the value is a secret
	Default     string   // what to offer
	Choices     []string // the values to choose from; if none, any value
}

// A File is what [Load] found in one. Printing or logging a File shows no secret of
// its servers. Its JSON does.
type File struct {
	// Servers are in the order of the file. Those of TOML are in the order of
	// their names.
	Servers []Server

	// Dialect is the client for which the file is written. See [Options.Dialect].
	Dialect string

	// Notes tell what has no effect here: keys that we don't know, and keys of
	// other clients. Each names file, server and key, and none has a secret.
	// There are at most 101.
	Notes []string
}

// String describes the File without secrets.
func (f File) String() string {
	type plain File
	return fmt.Sprintf("%+v", plain(f))
}

// LogValue is [File.String], for any [slog.Handler].
func (f File) LogValue() slog.Value { return slog.StringValue(f.String()) }

// Limits of a file. Real ones have a few kilobytes.
const (
	maxBytes     = 4 << 20
	maxTOML      = 256 << 10 // the time to parse TOML grows with the square of the tables
	maxSideBytes = 1 << 20   // of another file that it names
	maxServers   = 1000
	maxSwitches  = 1000       // tools that are switched off for all servers; bytes of each
	maxSearch    = 50_000_000 // bytes of all their patterns, times bytes of all names of servers
	maxNotes     = 100
)

// Load reads a file of at most 4 MiB in which an MCP client keeps its
// servers. It is JSON with or without comments, or TOML as Codex writes it, and has
// "mcpServers" or the key of another client: see [Options.Dialect]. That is an object, or a
// list of servers that have a "name". A server has either
//
//	"command", "args", "env", "cwd"   for a child process, or
//	"url", "headers"                  for streamable HTTP, and optionally
//
//	"disabled"      true to leave it out
//	"eager"         see [Server.Eager]
//	"noInstructions" see [Server.NoInstructions]
//	"noSkills"      see [Server.NoSkills]
//	"unlistedResources"
//	                see [Server.UnlistedResources]
//	"tools"         {"allow": […], "deny": […]}: names or patterns, see [Access]
//	"needs"         {"edit_file": ["read_file"]}: see [Server.Needs]
//	"resultSelect"  {"list_issues": "[.issues[] | {id, title}]"}: see [Server.ResultSelect]
//	"prefix"        see [Server.Prefix]
//	"protocol"      see [Server.Protocol]: "2025-11-25"
//	"timeout"       see [Server.StartTimeout]: "20s" or milliseconds
//	"callTimeout"   see [Server.CallTimeout]: likewise
//
// KEYS.md beside this file has the keys of all clients and what becomes of them. Each key
// there that switches off a server or a tool holds. In strings, ${VAR} stands for an
// environment variable, and ${VAR:-text} for text if the variable is unset. A server that
// lacks only variables is in the File with [Server.Unset], and is no problem: the others work
// without it. A host that wants all of them looks there.
//
// The error joins one error for each problem. They name the file and the server.
// The File is never nil and holds the servers that have no problem. If opts is nil, it
// stands for the zero value.
func Load(path string, opts *Options) (*File, error) {
	data, err := readFile(path, maxBytes)
	if ext := strings.ToLower(filepath.Ext(path)); err == nil && (ext == ".yaml" || ext == ".yml") {
		err = errors.New("YAML is not read here: LoadServers of the package files reads it")
	}
	if err != nil {
		return &File{}, fmt.Errorf("mcphybrid: %s: %w", path, err)
	}
	return Parse(data, path, opts)
}

// Parse is [Load] for the content of the file with that path. It is TOML if the path ends
// with .toml, else JSON.
func Parse(data []byte, path string, opts *Options) (*File, error) {
	s := source{path: path, env: os.LookupEnv}
	if opts != nil {
		s.Options = *opts
	}
	found, err := parse(data, s)
	file, problems := found.file()
	for i, note := range file.Notes {
		file.Notes[i] = path + ": " + note
	}
	if err = cmp.Or(err, problems); err != nil {
		return file, fmt.Errorf("mcphybrid: %s: %w", path, err)
	}
	return file, nil
}

// A source is where the content of a file comes from, and what its values do.
type source struct {
	Options
	path string                                    // by it, parse recognizes the client and finds the workspace; "" for none
	env  func(name string) (value string, ok bool) // looks up an environment variable
}

// found is what parse found in a file.
type found struct {
	dialect string
	servers []outcome // in the order of the file
	notes   []string  // what has no effect: beside the servers, then server by server
}

// An outcome is a server of a file. If err is not nil, it says why the server can't be
// used. Then, and if the server is disabled, it has only its name.
type outcome struct {
	Server
	err   error
	unset []string // if only variables are missing, their names
}

// file returns f without the servers that can't be used, and the errors of these, joined. Those
// that lack only variables are in it.
func (f found) file() (*File, error) {
	file := &File{Dialect: f.dialect, Notes: f.notes}
	var problems []error
	for _, s := range f.servers {
		if s.unset != nil {
			file.Servers = append(file.Servers, Server{Name: s.Name, Unset: s.unset})
			continue
		}
		if s.err != nil {
			problems = append(problems, fmt.Errorf("server %q: %w", s.Name, s.err))
			continue
		}
		file.Servers = append(file.Servers, s.Server)
	}
	return file, errors.Join(problems...)
}

// parse reads data, the content of a file. The error is about the file as a whole.
func parse(data []byte, s source) (found, error) {
	data, err := toJSON(data, &s)
	if err != nil {
		return found{}, err
	}
	return parseJSON(data, s)
}

// parseJSON is parse for JSON without comments.
func parseJSON(data []byte, s source) (found, error) {
	doc, err := parseDocument(data, &s)
	if err != nil {
		return found{}, err
	}
	r := &reader{document: doc, source: s, answers: make(map[string]answer)}
	f := found{dialect: doc.dialect.name}
	for _, m := range doc.servers {
		f.servers = append(f.servers, r.server(m))
	}
	f.notes = r.notes.all()
	return f, nil
}

// A reader reads the servers of one document.
type reader struct {
	*document
	source
	answers map[string]answer // by the ID of the input
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
