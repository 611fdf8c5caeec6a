package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/frontmatter"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"go.yaml.in/yaml/v4"
)

// A folderFS is the files in the folder of that path, and none outside of it.
type folderFS string

func (dir folderFS) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(filepath.FromSlash(name))
}

func (dir folderFS) Stat(name string) (fs.FileInfo, error) {
	root, err := os.OpenRoot(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(filepath.FromSlash(name))
}

const fileName = "SKILL.md"

// How much is looked at.
const (
	maxDepth       = 4
	maxFolders     = 2000
	maxFile        = 1 << 20
	maxFrontMatter = frontmatter.MaxSize
)

// A walk looks for skills.
type walk struct {
	fsys     fs.FS
	full     func(file string) string // how a file is named in errors
	folders  int
	skills   []mcphybrid.Skill
	files    map[string]string // by name of the skills
	problems []error
}

// loadSkills returns the skills below the root of fsys. full returns a file's path for
// people. What is in the folder of a skill is its own, and no further skill. Of two of one
// name there is the first.
func loadSkills(fsys fs.FS, full func(file string) string) ([]mcphybrid.Skill, error) {
	w := &walk{fsys: fsys, full: full, files: make(map[string]string)}
	if _, err := fs.Stat(fsys, "."); err != nil {
		return nil, text.Bounded(fmt.Errorf("mcphybrid: the folder of skills: %w", err))
	}
	w.folder(".", 0)
	return w.skills, errors.Join(w.problems...)
}

func (w *walk) problem(file string, err error) {
	w.problems = append(w.problems, text.Bounded(fmt.Errorf("mcphybrid: %s: %w", w.full(file), err)))
}

func (w *walk) folder(dir string, depth int) {
	switch w.folders++; {
	case w.folders == maxFolders+1:
		w.problem(dir, fmt.Errorf("there are more than %d folders; the others are not looked at", maxFolders))
		return
	case w.folders > maxFolders:
		return
	}
	file := path.Join(dir, fileName)
	switch info, err := fs.Stat(w.fsys, file); {
	case err == nil:
		w.file(file, info)
		return
	case !errors.Is(err, fs.ErrNotExist):
		w.problem(file, err)
		return
	case depth == maxDepth:
		return
	}
	entries, err := fs.ReadDir(w.fsys, dir)
	if err != nil {
		w.problem(dir, err)
	}
	for _, e := range entries {
		inner := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" {
			continue
		}
		isDir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := fs.Stat(w.fsys, inner)
			if err != nil {
				w.problem(inner, err)
				continue
			}
			isDir = info.IsDir()
		}
		if isDir {
			w.folder(inner, depth+1)
		}
	}
}

func (w *walk) file(file string, info fs.FileInfo) {
	sk, err := readSkill(w.fsys, file, info)
	if err == nil && w.files[sk.Name] != "" {
		err = fmt.Errorf("the name %q: there is another skill in %s: %w", sk.Name, w.full(w.files[sk.Name]), mcphybrid.ErrDuplicate)
	}
	if err != nil {
		w.problem(file, err)
		return
	}
	w.files[sk.Name] = file
	w.skills = append(w.skills, sk)
}

// readSkill reads the front matter of a file.
func readSkill(fsys fs.FS, file string, info fs.FileInfo) (mcphybrid.Skill, error) {
	switch {
	case !info.Mode().IsRegular():
		return mcphybrid.Skill{}, errors.New("it is no regular file")
	case info.Size() > maxFile:
		return mcphybrid.Skill{}, fmt.Errorf("it has %d bytes, more than the limit of %d", info.Size(), maxFile)
	}
	head, err := readBeginning(fsys, file, maxFrontMatter)
	if err != nil {
		return mcphybrid.Skill{}, err
	}
	sk, err := parseSkill(head)
	if err != nil {
		return mcphybrid.Skill{}, err
	}
	sk.Load = func(context.Context) (string, error) {
		data, err := readBeginning(fsys, file, maxFile+1)
		if err != nil {
			return "", err
		}
		if len(data) > maxFile {
			return "", fmt.Errorf("it has more than %d bytes", maxFile)
		}
		_, body, err := splitFrontMatter(data)
		return strings.TrimSpace(string(body)), err
	}
	return sk, nil
}

func readBeginning(fsys fs.FS, file string, limit int64) ([]byte, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// A lineError tells what is wrong with a line of a file.
type lineError struct {
	line int // from 1
	text string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

// splitFrontMatter is [frontmatter.Split] of the beginning of a file.
func splitFrontMatter(data []byte) (front, body []byte, err error) {
	switch front, body, err = frontmatter.Split(data); {
	case errors.Is(err, frontmatter.ErrOpen):
		err = &lineError{1, fmt.Sprintf("%v, in the first %d bytes", err, maxFrontMatter)}
	case err != nil:
		err = &lineError{1, err.Error()}
	}
	return front, body, err
}

// parseSkill returns what the front matter says of a skill, which has no text
// yet. data may be cut anywhere below the front matter.
func parseSkill(data []byte) (sk mcphybrid.Skill, err error) {
	front, _, err := splitFrontMatter(data)
	if err != nil {
		return sk, err
	}
	for at, r := range string(front) {
		line := 2 + bytes.Count(front[:at], []byte("\n"))
		_, size := utf8.DecodeRune(front[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			return sk, &lineError{line, "it is not UTF-8"}
		case unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r':
			return sk, &lineError{line, fmt.Sprintf("it has the control character %U", r)}
		}
	}
	fields, err := parseFields(front)
	if err != nil {
		return sk, err
	}
	lines := make(map[string]int)
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, line := fields[i].Value, fields[i+1], fields[i].Line
		if lines[key] != 0 {
			return sk, &lineError{line, fmt.Sprintf("%q is there twice, first in line %d", text.Line(key, text.MaxName), lines[key])}
		}
		lines[key] = line
		switch key {
		case "name":
			if sk.Name, err = scalar(value); err == nil {
				err = probe(func(p *mcphybrid.Skill) { p.Name = sk.Name })
			}
		case "description":
			if sk.Description, err = scalar(value); err == nil {
				err = probe(func(p *mcphybrid.Skill) { p.Description = sk.Description })
			}
		case "tools":
			if sk.Tools, err = toolList(value); err == nil {
				err = probe(func(p *mcphybrid.Skill) { p.Tools = sk.Tools })
			}
		}
		if err != nil {
			return sk, &lineError{line, fmt.Sprintf("%q: %v", key, err)}
		}
	}
	for _, key := range []string{"name", "description"} {
		if lines[key] == 0 {
			return sk, &lineError{1, fmt.Sprintf("the front matter has no %q", key)}
		}
	}
	return sk, nil
}

// parseFields returns the keys and values of front matter, in turn, with their
// lines in the file.
func parseFields(front []byte) ([]*yaml.Node, error) {
	doc, err := parseYAML(front)
	if err != nil {
		// Many have a colon in a description without quotes, which is no YAML.
		if quoted := quoteDescription(front); quoted != nil {
			if again, err2 := parseYAML(quoted); err2 == nil {
				doc, err = again, nil
			}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode:
		return nil, &lineError{2, "the front matter is no list of fields"}
	}
	return doc.Content[0].Content, nil
}

// parseYAML parses front matter, with its lines in the file.
func parseYAML(front []byte) (*yaml.Node, error) {
	doc := new(yaml.Node)
	err := yaml.Unmarshal(append([]byte("\n"), front...), doc)
	if err == nil {
		return doc, nil
	}
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return nil, &lineError{2, err.Error()}
	}
	return nil, &lineError{max(e.Mark.Line, 2), e.Message}
}

// quoteDescription returns front with the description in quotes, or nil if it
// is not a plain line of text.
func quoteDescription(front []byte) []byte {
	const key = "description:"
	lines := strings.Split(string(front), "\n")
	for i, line := range lines {
		text, ok := strings.CutPrefix(line, key)
		text = strings.TrimSpace(text)
		if ok && text != "" && !strings.ContainsAny(text[:1], "\"'|>[{&*!%@`#") {
			lines[i] = key + " '" + strings.ReplaceAll(text, "'", "''") + "'"
			return []byte(strings.Join(lines, "\n"))
		}
	}
	return nil
}

// scalar returns a text. Aliases stand for what they name; as nothing else is
// expanded, they can't make much of little.
func scalar(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("it is no text")
	case n.Tag == "!!null":
		return "", nil
	}
	return strings.TrimSpace(n.Value), nil
}

// toolList returns names, which are a list or a line with spaces or commas
// between them.
func toolList(n *yaml.Node) ([]string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.SequenceNode {
		text, err := scalar(n)
		if err != nil {
			return nil, errors.New("it is no list of names")
		}
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), nil
	}
	var names []string
	for _, element := range n.Content {
		name, err := scalar(element)
		if err != nil {
			return nil, errors.New("it is no list of names")
		}
		names = append(names, name)
	}
	return names, nil
}

// probe returns what is wrong with a skill that is right but for what set does.
func probe(set func(*mcphybrid.Skill)) error {
	sk := mcphybrid.Skill{Name: "a", Description: "a", Body: "a"}
	set(&sk)
	return sk.Validate()
}
