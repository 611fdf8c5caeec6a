package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	maxFile    = 4 << 20 // bytes of a file to read
	maxEntries = 20000   // entries of a directory tree to visit
	maxMatch   = 300     // bytes of a matching line to show
)

// inRoot opens the directory root for the time of one call of run.
func inRoot[In any](root string, run func(*os.Root, In) (any, error)) func(In) (any, error) {
	return func(in In) (any, error) {
		r, err := os.OpenRoot(root)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return run(r, in)
	}
}

// checkRegular reports an error unless name is a file of a size to work with.
// In particular, opening a pipe could block.
func checkRegular(r *os.Root, name string) error {
	info, err := r.Stat(name)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	case info.Size() > maxFile:
		return fmt.Errorf("%s has %d bytes; at most %d are allowed", name, info.Size(), maxFile)
	}
	return nil
}

func readFile(r *os.Root, name string) ([]byte, error) {
	if err := checkRegular(r, name); err != nil {
		return nil, err
	}
	return r.ReadFile(name)
}

func readLines(r *os.Root, name string) ([]string, error) {
	data, err := readFile(r, name)
	return splitLines(string(data)), err
}

// writeFile creates or replaces a file, with its parent directories.
func writeFile(r *os.Root, name, content string) error {
	if len(content) > maxFile {
		return fmt.Errorf("%s would have %d bytes; at most %d are allowed", name, len(content), maxFile)
	}
	if err := checkRegular(r, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := r.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return r.WriteFile(name, []byte(content), 0o644)
}

// prepareTarget makes sure that in.To is free, or may be overwritten, and has
// a parent directory.
func prepareTarget(r *os.Root, in fromTo) error {
	if _, err := r.Lstat(in.From); err != nil {
		return err
	}
	if _, err := r.Lstat(in.To); err == nil && !in.Overwrite {
		return fmt.Errorf("%s exists; set overwrite to replace it", in.To)
	}
	return r.MkdirAll(path.Dir(in.To), 0o755)
}

// walk visits dir and everything below it in lexical order.
func walk(r *os.Root, dir string, visit func(name string, entry fs.DirEntry) error) error {
	visited := 0
	return fs.WalkDir(r.FS(), path.Clean(dir), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if visited++; visited > maxEntries {
			return fmt.Errorf("there are more than %d files below %s", maxEntries, dir)
		}
		return visit(name, entry)
	})
}

func newFileInfo(name string, info fs.FileInfo) fileInfo {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return fileInfo{Path: name, Type: "file", Size: info.Size()}
	case mode.IsDir():
		return fileInfo{Path: name, Type: "directory"}
	case mode&fs.ModeSymlink != 0:
		return fileInfo{Path: name, Type: "symlink"}
	}
	return fileInfo{Path: name, Type: "other"}
}

var globSyntax = strings.NewReplacer(
	`\*\*/`, `(?:.*/)?`,
	`\*\*`, `.*`,
	`\*`, `[^/]*`,
	`\?`, `[^/]`,
)

// glob returns a function that matches paths, or the last elements of paths
// if the pattern has no slash.
func glob(pattern string) (match func(name string) bool, err error) {
	re, err := regexp.Compile("(?s)^" + globSyntax.Replace(regexp.QuoteMeta(pattern)) + "$")
	if err != nil {
		return nil, err
	}
	bare := !strings.Contains(pattern, "/")
	return func(name string) bool {
		if bare {
			name = path.Base(name)
		}
		return re.MatchString(name)
	}, nil
}

// textFiles calls visit with the name and text of each file below dir that
// matches the pattern and is neither binary nor too large.
func textFiles(r *os.Root, dir, pattern string, visit func(name, text string) error) error {
	match, err := glob(pattern)
	if err != nil {
		return err
	}
	return walk(r, dir, func(name string, entry fs.DirEntry) error {
		if !entry.Type().IsRegular() || !match(name) {
			return nil
		}
		data, err := readFile(r, name)
		if err != nil || bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
			return nil
		}
		return visit(name, string(data))
	})
}

type grepArgs struct {
	Pattern, Path, Glob string
	IgnoreCase          bool `json:"ignore_case"`
	Limit               int
}

func grep(r *os.Root, in grepArgs) (any, error) {
	re, err := compile(in.Pattern, in.IgnoreCase)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	matches := 0
	err = textFiles(r, in.Path, in.Glob, func(name, text string) error {
		for i, line := range splitLines(text) {
			if !re.MatchString(line) {
				continue
			}
			if matches == in.Limit {
				fmt.Fprintf(&out, "(stopped after %d matches)\n", matches)
				return fs.SkipAll
			}
			matches++
			fmt.Fprintf(&out, "%s:%d:%s\n", name, i+1, strings.ToValidUTF8(line[:min(len(line), maxMatch)], ""))
		}
		return nil
	})
	if err == nil && matches == 0 {
		return "No matches.", nil
	}
	return out.String(), err
}

type replaceArgs struct {
	Glob, Old, New string
	DryRun         bool `json:"dry_run"`
}

func replaceInFiles(r *os.Root, in replaceArgs) (any, error) {
	type replaced struct {
		Path         string `json:"path"`
		Replacements int    `json:"replacements"`
	}
	files := []replaced{}
	err := textFiles(r, ".", in.Glob, func(name, text string) error {
		n := strings.Count(text, in.Old)
		if n == 0 {
			return nil
		}
		files = append(files, replaced{name, n})
		if in.DryRun {
			return nil
		}
		text, err := replaceAll(text, in.Old, in.New)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return writeFile(r, name, text)
	})
	return files, err
}

func findDuplicates(r *os.Root, in pathArg) (any, error) {
	bySize := map[int64][]string{}
	err := walk(r, in.Path, func(name string, entry fs.DirEntry) error {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bySize[info.Size()] = append(bySize[info.Size()], name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	byDigest := map[string][]string{}
	for _, names := range bySize {
		if len(names) == 1 {
			continue
		}
		for _, name := range names {
			if data, err := readFile(r, name); err == nil {
				sum := digest("sha256", data)
				byDigest[sum] = append(byDigest[sum], name)
			}
		}
	}
	groups := [][]string{}
	for _, names := range byDigest {
		if len(names) > 1 {
			groups = append(groups, names)
		}
	}
	slices.SortFunc(groups, slices.Compare[[]string])
	return groups, nil
}
