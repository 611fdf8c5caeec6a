package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type (
	pathArg  struct{ Path string }
	linesArg struct {
		Path  string
		Lines int
	}
	contentArg struct{ Path, Content string }
	fromTo     struct {
		From, To  string
		Overwrite bool
	}
)

type fileInfo struct {
	Path     string    `json:"path"`
	Type     string    `json:"type"`
	Size     int64     `json:"size"` // 0 except for regular files
	Mode     string    `json:"mode,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
}

// filesServer serves the files below the directory root and no others.
func filesServer(root string) *server.MCPServer {
	s := newServer("files", "Reads and changes the files of one directory. All paths are relative to it.")
	file := str("path", "Path of the file, relative to the root directory.", required)
	dir := str("path", "Directory to look in, relative to the root directory.", mcp.DefaultString("."))

	query(s, "read_file",
		"Read the complete contents of a file. Text must be UTF-8; ask for base64 to read images, archives and other binary files.",
		inRoot(root, func(r *os.Root, in struct{ Path, Encoding string }) (any, error) {
			data, err := readFile(r, in.Path)
			if err != nil || in.Encoding == "base64" {
				return base64.StdEncoding.EncodeToString(data), err
			}
			if !utf8.Valid(data) {
				return nil, errors.New("the file is not UTF-8 text; read it with encoding base64")
			}
			return string(data), nil
		}),
		file, str("encoding", "How to return the contents.", mcp.Enum("text", "base64"), mcp.DefaultString("text")))

	query(s, "read_line_range",
		"Read only the lines from start to end of a text file, each prefixed with its number. Prefer this to reading the complete file when a stack trace, a compiler or a search result already told you which lines are the interesting ones.",
		inRoot(root, func(r *os.Root, in struct {
			Path       string
			Start, End int
		}) (any, error) {
			lines, err := readLines(r, in.Path)
			if err != nil {
				return nil, err
			}
			if in.Start > in.End || in.Start > len(lines) {
				return nil, fmt.Errorf("there are no lines %d to %d in %d lines", in.Start, in.End, len(lines))
			}
			var out strings.Builder
			for i, line := range lines[in.Start-1 : min(in.End, len(lines))] {
				fmt.Fprintf(&out, "%d: %s\n", in.Start+i, line)
			}
			return out.String(), nil
		}),
		file,
		integer("start", "First line to read, counting from 1.", 1, 1e9, required),
		integer("end", "Last line to read.", 1, 1e9, required))

	query(s, "head_file", "Show the first lines of a text file.",
		inRoot(root, func(r *os.Root, in linesArg) (any, error) {
			lines, err := readLines(r, in.Path)
			return strings.Join(lines[:min(in.Lines, len(lines))], "\n"), err
		}),
		file, integer("lines", "How many lines to show.", 1, 10000, mcp.DefaultNumber(10)))

	query(s, "tail_file", "Show the last lines of a text file, for example the most recent entries of a log.",
		inRoot(root, func(r *os.Root, in linesArg) (any, error) {
			lines, err := readLines(r, in.Path)
			return strings.Join(lines[max(0, len(lines)-in.Lines):], "\n"), err
		}),
		file, integer("lines", "How many lines to show.", 1, 10000, mcp.DefaultNumber(10)))

	query(s, "count_lines", "Count the lines, words and bytes of a text file.",
		inRoot(root, func(r *os.Root, in pathArg) (any, error) {
			data, err := readFile(r, in.Path)
			return map[string]int{
				"lines": len(splitLines(string(data))),
				"words": len(bytes.Fields(data)),
				"bytes": len(data),
			}, err
		}),
		file)

	query(s, "file_checksum", "Compute the checksum of a file, to verify a download or to see whether two copies are identical.",
		inRoot(root, func(r *os.Root, in struct{ Path, Algorithm string }) (any, error) {
			data, err := readFile(r, in.Path)
			if err != nil {
				return nil, err
			}
			return digest(in.Algorithm, data), nil
		}),
		file, str("algorithm", "Hash algorithm.", mcp.Enum(algorithms...), mcp.DefaultString("sha256")))

	query(s, "stat_file", "Get the metadata of a file or directory: type, size, permissions and time of the last modification.",
		inRoot(root, func(r *os.Root, in pathArg) (any, error) {
			info, err := r.Lstat(in.Path)
			if err != nil {
				return nil, err
			}
			stat := newFileInfo(path.Clean(in.Path), info)
			stat.Mode, stat.Modified = info.Mode().String(), info.ModTime().UTC()
			return stat, nil
		}),
		str("path", "Path of the file or directory, relative to the root directory.", required))

	query(s, "diff_files", "Compare two text files line by line and return the differences as a unified diff, or nothing if they are equal.",
		inRoot(root, func(r *os.Root, in struct {
			A, B    string
			Context int
		}) (any, error) {
			a, errA := readFile(r, in.A)
			b, errB := readFile(r, in.B)
			if err := errors.Join(errA, errB); err != nil {
				return nil, err
			}
			return unifiedDiff(in.A, in.B, string(a), string(b), in.Context)
		}),
		str("a", "Path of the old file.", required),
		str("b", "Path of the new file.", required),
		integer("context", "Unchanged lines to show around each difference.", 0, 50, mcp.DefaultNumber(3)))

	query(s, "list_directory", "List the entries of a directory with their types and sizes.",
		inRoot(root, func(r *os.Root, in struct {
			Path   string
			Hidden bool
		}) (any, error) {
			entries, err := fs.ReadDir(r.FS(), path.Clean(in.Path))
			if err != nil {
				return nil, err
			}
			list := []fileInfo{}
			for _, entry := range entries {
				if info, err := entry.Info(); err == nil && (in.Hidden || !strings.HasPrefix(entry.Name(), ".")) {
					list = append(list, newFileInfo(path.Join(in.Path, entry.Name()), info))
				}
			}
			return list, nil
		}),
		dir, flag("hidden", "Whether to list the entries whose names start with a dot, too."))

	query(s, "directory_tree", "Show the hierarchy of folders and files below a directory as an indented outline, a good first overview of an unknown project.",
		inRoot(root, func(r *os.Root, in struct {
			Path  string
			Depth int
		}) (any, error) {
			var out strings.Builder
			base := path.Clean(in.Path)
			err := walk(r, base, func(name string, entry fs.DirEntry) error {
				if name == base {
					return nil
				}
				depth := strings.Count(strings.TrimPrefix(name, base+"/"), "/")
				if entry.IsDir() {
					fmt.Fprintf(&out, "%s%s/\n", strings.Repeat("  ", depth), entry.Name())
					if depth+1 == in.Depth {
						return fs.SkipDir
					}
					return nil
				}
				fmt.Fprintf(&out, "%s%s\n", strings.Repeat("  ", depth), entry.Name())
				return nil
			})
			return out.String(), err
		}),
		dir, integer("depth", "How many levels to descend.", 1, 20, mcp.DefaultNumber(3)))

	query(s, "find_files",
		"Find files whose names match a glob pattern. An asterisk matches within one name and ** across directories; a pattern without a slash is matched against the bare file name, so *.go finds the Go files at any depth.",
		inRoot(root, func(r *os.Root, in struct{ Pattern, Path string }) (any, error) {
			match, err := glob(in.Pattern)
			if err != nil {
				return nil, err
			}
			found := []string{}
			err = walk(r, in.Path, func(name string, entry fs.DirEntry) error {
				if !entry.IsDir() && match(name) {
					found = append(found, name)
				}
				return nil
			})
			return found, err
		}),
		str("pattern", "Glob pattern such as *.txt or src/**/test_*.py.", required, mcp.MaxLength(500)), dir)

	query(s, "grep_files",
		"Search the contents of files for a regular expression and return the matching lines with file names and line numbers. Binary and very large files are skipped. Narrow the search with a glob pattern when the directory is big.",
		inRoot(root, grep),
		str("pattern", "Regular expression in RE2 syntax.", required, mcp.MinLength(1), mcp.MaxLength(500)), dir,
		str("glob", "Search only the files that match this glob pattern.", mcp.DefaultString("*"), mcp.MaxLength(500)),
		flag("ignore_case", "Whether upper and lower case are the same."),
		integer("limit", "Most matching lines to return.", 1, 5000, mcp.DefaultNumber(100)))

	query(s, "disk_usage", "Sum up how much disk space a directory takes and name the largest files in it.",
		inRoot(root, func(r *os.Root, in struct {
			Path string
			Top  int
		}) (any, error) {
			var files []fileInfo
			var total int64
			err := walk(r, in.Path, func(name string, entry fs.DirEntry) error {
				if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
					files = append(files, newFileInfo(name, info))
					total += info.Size()
				}
				return nil
			})
			slices.SortStableFunc(files, func(a, b fileInfo) int { return cmp.Compare(b.Size, a.Size) })
			return map[string]any{"bytes": total, "files": len(files), "largest": files[:min(in.Top, len(files))]}, err
		}),
		dir, integer("top", "How many of the largest files to name.", 0, 100, mcp.DefaultNumber(5)))

	query(s, "find_duplicate_files", "Find groups of files with exactly the same contents, whatever their names are.",
		inRoot(root, findDuplicates), dir)

	tool(s, "write_file", "Write text to a file, creating it and its parent directories if necessary. An existing file is left alone unless overwrite is set.",
		inRoot(root, func(r *os.Root, in struct {
			Path, Content string
			Overwrite     bool
		}) (any, error) {
			if _, err := r.Lstat(in.Path); err == nil && !in.Overwrite {
				return nil, fmt.Errorf("%s exists; set overwrite to replace it", in.Path)
			}
			return fmt.Sprintf("Wrote %d bytes to %s.", len(in.Content), in.Path), writeFile(r, in.Path, in.Content)
		}),
		file, str("content", "The complete new contents.", required),
		flag("overwrite", "Whether to replace the file if it exists."), idempotent)

	tool(s, "append_to_file", "Append text to the end of a file, creating the file if it does not exist.",
		inRoot(root, func(r *os.Root, in contentArg) (any, error) {
			old, err := readFile(r, in.Path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			return fmt.Sprintf("Appended %d bytes to %s.", len(in.Content), in.Path), writeFile(r, in.Path, string(old)+in.Content)
		}),
		file, str("content", "Text to append, including any line breaks.", required), additive)

	tool(s, "edit_file",
		"Edit a text file by replacing one passage with another. The old passage has to occur exactly once, so quote enough of its surroundings to make it unique, or set all to replace every occurrence. Returns a diff of the edit.",
		inRoot(root, func(r *os.Root, in struct {
			Path, Old, New string
			All            bool
		}) (any, error) {
			data, err := readFile(r, in.Path)
			if err != nil {
				return nil, err
			}
			switch n := strings.Count(string(data), in.Old); {
			case n == 0:
				return nil, errors.New("the old passage does not occur in the file")
			case n > 1 && !in.All:
				return nil, fmt.Errorf("the old passage occurs %d times; quote more of it or set all", n)
			}
			text, err := replaceAll(string(data), in.Old, in.New)
			if err == nil {
				err = writeFile(r, in.Path, text)
			}
			if err != nil {
				return nil, err
			}
			return unifiedDiff(in.Path, in.Path, string(data), text, 3)
		}),
		file, str("old", "Passage to replace, exactly as in the file.", required, mcp.MinLength(1)),
		str("new", "Replacement, empty to delete the passage.", required),
		flag("all", "Whether to replace every occurrence."))

	tool(s, "replace_in_files", "Replace a text in all files that match a glob pattern, such as a renamed identifier across a project. Try it with dry_run first.",
		inRoot(root, replaceInFiles),
		str("glob", "Pattern of the files to change.", required, mcp.MinLength(1), mcp.MaxLength(500)),
		str("old", "Text to replace.", required, mcp.MinLength(1)),
		str("new", "Replacement.", required),
		flag("dry_run", "Whether only to count what would be replaced."))

	tool(s, "make_directory", "Create a directory together with any missing parents.",
		inRoot(root, func(r *os.Root, in pathArg) (any, error) {
			return "Created " + in.Path + ".", r.MkdirAll(in.Path, 0o755)
		}),
		str("path", "Path of the new directory, relative to the root directory.", required, mcp.MinLength(1)), additive, idempotent)

	from := str("from", "Present path, relative to the root directory.", required)
	to := str("to", "New path, relative to the root directory.", required)
	overwrite := flag("overwrite", "Whether to replace an existing file at the new path.")

	tool(s, "move_file", "Move or rename a file or directory.",
		inRoot(root, func(r *os.Root, in fromTo) (any, error) {
			if err := prepareTarget(r, in); err != nil {
				return nil, err
			}
			return fmt.Sprintf("Moved %s to %s.", in.From, in.To), r.Rename(in.From, in.To)
		}),
		from, to, overwrite)

	tool(s, "copy_file", "Copy a file to a new path.",
		inRoot(root, func(r *os.Root, in fromTo) (any, error) {
			data, err := readFile(r, in.From)
			if err == nil {
				err = prepareTarget(r, in)
			}
			if err == nil {
				err = writeFile(r, in.To, string(data))
			}
			return fmt.Sprintf("Copied %s to %s.", in.From, in.To), err
		}),
		from, to, overwrite)

	tool(s, "delete_file", "Delete a single file for good. There is no trash to recover it from.",
		inRoot(root, func(r *os.Root, in pathArg) (any, error) {
			if info, err := r.Lstat(in.Path); err == nil && info.IsDir() {
				return nil, fmt.Errorf("%s is a directory", in.Path)
			}
			return "Deleted " + in.Path + ".", r.Remove(in.Path)
		}),
		file)

	tool(s, "delete_directory", "Delete a directory, by default only if it is empty. With recursive set, everything below it is lost as well.",
		inRoot(root, func(r *os.Root, in struct {
			Path      string
			Recursive bool
		}) (any, error) {
			if info, err := r.Lstat(in.Path); err != nil {
				return nil, err
			} else if !info.IsDir() || path.Clean(in.Path) == "." {
				return nil, fmt.Errorf("%s cannot be deleted as a directory", in.Path)
			}
			remove := r.Remove
			if in.Recursive {
				remove = r.RemoveAll
			}
			return "Deleted " + in.Path + ".", remove(in.Path)
		}),
		str("path", "Path of the directory, relative to the root directory.", required),
		flag("recursive", "Whether to delete the contents, too."))

	return s
}
