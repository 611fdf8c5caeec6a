package resources

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/frontmatter"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Manifest is what a server lists of a skill beside its name and description, by the
// extension io.modelcontextprotocol/skills (SEP-2640, as of 2026-09-13).
type Manifest struct {
	Own   string   // what tells it from the server's other skills
	Tools []string // names of the tools that it needs
	Files []File   // all its files, of which SKILL.md is one, in the order of their URIs

	front []byte // the front matter, with its members in order
}

// A File is a file of a skill.
type File struct {
	URI  string
	Path string // within the skill
	Size int64  // in bytes
	Sum  [sha256.Size]byte
}

// What a skill may have. The first two are limits of the extension.
const (
	maxSkillFiles = 512
	maxSkillBytes = 16 << 20

	// MaxSkillText is how many bytes the text of a skill may have.
	MaxSkillText = 1 << 20
)

const skillFile = "/SKILL.md"

// parseSkill reads an element of skills/list. What it returns is not checked for the names
// that a skill can have.
func parseSkill(raw json.RawMessage, maxBytes int) (*Item, error) {
	values, twice, err := text.ReadElement(raw, maxBytes, "uri", "frontmatter", "resources")
	if err != nil {
		return nil, err
	}
	front, files := values[1], values[2]
	it := &Item{Kind: Skill, Raw: raw, Manifest: new(Manifest)}
	if it.ID, err = text.String("uri", values[0]); err != nil {
		return nil, err
	}
	if it.ID == "" {
		return nil, errors.New("the uri is missing")
	}
	fail := func(format string, args ...any) (*Item, error) {
		return nil, fmt.Errorf("%q: "+format, append([]any{text.Line(it.ID, text.MaxName)}, args...)...)
	}
	switch {
	case twice != "":
		return fail("the member %q is there more than once", twice)
	case text.IsNull(front) || front[0] != '{':
		return fail("the frontmatter is no object")
	}
	if twice = text.Twice(front); twice != "" {
		return fail("the frontmatter has the member %q more than once", text.Line(twice, text.MaxName))
	}
	if err := it.readFront(front); err != nil {
		return fail("%w", err)
	}
	if err := checkURI(it.ID); err != nil {
		return fail("the uri: %w", err)
	}
	forms, err := Forms(it.ID)
	if err != nil {
		return fail("the uri: %w", err)
	}
	it.forms = forms[1:]
	root, ok := strings.CutSuffix(it.ID, skillFile)
	scheme, place, hosted := strings.Cut(root, "://")
	if !ok || !hosted || scheme == "" || checkPath(place) != nil || path.Base(place) != it.Name {
		return fail("the uri does not end in its name and SKILL.md, as in skill://%s/SKILL.md", text.Line(it.Name, text.MaxName))
	}
	it.Manifest.Own = SkillPath(it.ID)
	if it.Manifest.Files, err = readFiles(root, files); err != nil {
		return fail("the resources: %w", err)
	}
	own := it.Manifest.File(it.ID)
	switch {
	case own == nil:
		return fail("the resources lack its SKILL.md")
	case own.Size > MaxSkillText:
		return fail("its SKILL.md has %d bytes, more than the limit of %d", own.Size, MaxSkillText)
	}
	return it, nil
}

// SkillPath returns what tells a skill from the server's others, by the URI of its SKILL.md:
// its path, and its scheme if that is not the usual one.
func SkillPath(uri string) string {
	return strings.TrimPrefix(strings.TrimSuffix(uri, skillFile), "skill://")
}

// readFront reads the front matter. The field tools is our extension of the format, as in
// the package files; one within metadata counts if there is none. No field permits anything.
func (it *Item) readFront(front json.RawMessage) (err error) {
	values, _ := text.Fields(front, "name", "description", "tools", "metadata")
	if it.Name, err = text.String("name", values[0]); err != nil {
		return err
	}
	if it.Description, err = text.String("description", values[1]); err != nil {
		return err
	}
	tools := values[2]
	if text.IsNull(tools) {
		within, _ := text.Fields(values[3], "tools")
		tools = within[0]
	}
	if it.Manifest.Tools, err = readTools(tools); err != nil {
		return err
	}
	var said any
	d := json.NewDecoder(bytes.NewReader(front))
	d.UseNumber()
	if err := d.Decode(&said); err != nil {
		return err
	}
	it.Manifest.front, err = json.Marshal(said)
	return err
}

// readTools returns names, which are a list or a line with spaces or commas between them.
func readTools(raw json.RawMessage) (names []string, err error) {
	if text.IsNull(raw) {
		return nil, nil
	}
	if line, ok := text.Unquote(raw); ok {
		return strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), nil
	}
	if json.Unmarshal(raw, &names) != nil {
		return nil, errors.New("its tools are no list of names")
	}
	return names, nil
}

// readFiles reads what a skill's server says of its files, which all are in the folder root.
func readFiles(root string, raw json.RawMessage) ([]File, error) {
	var listed []struct {
		URI    string `json:"uri"`
		Digest string `json:"digest"`
		Size   *int64 `json:"size"`
	}
	if kind, ok := text.Unquote(raw); !text.IsNull(raw) && ok && kind == "dynamic" {
		return nil, errors.New("they are dynamic: nothing says what was accepted")
	}
	if text.IsNull(raw) || json.Unmarshal(raw, &listed) != nil {
		return nil, errors.New("they are no list of files with digests and sizes")
	}
	if len(listed) > maxSkillFiles {
		return nil, fmt.Errorf("there are %d, more than the limit of %d", len(listed), maxSkillFiles)
	}
	files, left := make([]File, len(listed)), int64(maxSkillBytes)
	for i, l := range listed {
		quoted := text.Line(l.URI, text.MaxName)
		place, ok := strings.CutPrefix(l.URI, root+"/")
		if !ok || checkURI(l.URI) != nil || checkPath(place) != nil {
			return nil, fmt.Errorf("%q is no file in the folder of the skill", quoted)
		}
		sum, ok := strings.CutPrefix(l.Digest, "sha256:")
		if _, err := hex.Decode(files[i].Sum[:], []byte(sum[:min(len(sum), 2*sha256.Size)])); err != nil || !ok || len(sum) != 2*sha256.Size || sum != strings.ToLower(sum) {
			return nil, fmt.Errorf("the digest of %q is not sha256: and 64 lower-case hexadecimal digits", quoted)
		}
		if l.Size == nil || *l.Size < 0 {
			return nil, fmt.Errorf("%q has no size", quoted)
		}
		if left -= min(*l.Size, maxSkillBytes+1); left < 0 {
			return nil, fmt.Errorf("they have together more bytes than the limit of %d", maxSkillBytes)
		}
		files[i].URI, files[i].Path, files[i].Size = l.URI, place, *l.Size
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.URI, b.URI) })
	for i := range files {
		if i > 0 && files[i].URI == files[i-1].URI {
			return nil, fmt.Errorf("%q is there more than once", text.Line(files[i].URI, text.MaxName))
		}
	}
	return files, nil
}

// checkPath returns an error if place, which may have escapes, could lead out of the folder
// that it is relative to, or is more than a path.
func checkPath(place string) error {
	plain := place
	for range 1 + maxUnescapes { // as it is, and each time that escapes are undone
		whole := strings.ReplaceAll(plain, "//", "/") // a part may be empty, as behind the scheme of a URI that is part of another
		if whole == "" || whole == "." || path.Clean("/" + whole)[1:] != whole || strings.ContainsAny(plain, "\\?#\x00") {
			return errors.New("it is no path")
		}
		plain = unescape(plain)
	}
	return nil
}

// File returns the file with that URI, or nil.
func (m *Manifest) File(uri string) *File {
	i, ok := slices.BinarySearchFunc(m.Files, uri, func(f File, uri string) int { return strings.Compare(f.URI, uri) })
	if !ok {
		return nil
	}
	return &m.Files[i]
}

// hash returns what [Item.Hash] has of a skill beyond what it has of other items.
func (m *Manifest) hash() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", m.front, m.Tools) // of two members spelled alike, front does not tell the last
	for _, f := range m.Files {
		fmt.Fprintf(h, " %q %x %d", f.URI, f.Sum, f.Size)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ErrOtherContent says that a server sent something else than what it listed.
var ErrOtherContent = errors.New("the server sent another content than the one whose digest it listed")

// Verify returns the bytes of the file, if they are the contents that were read.
func (f *File) Verify(r *mcp.ReadResourceResult) (data []byte, err error) {
	if r == nil || len(r.Contents) != 1 {
		return nil, ErrOtherContent
	}
	switch c := r.Contents[0].(type) {
	case mcp.TextResourceContents:
		data = []byte(c.Text)
	case mcp.BlobResourceContents:
		if data, err = base64.StdEncoding.DecodeString(c.Blob); err != nil {
			return nil, ErrOtherContent
		}
	}
	if int64(len(data)) != f.Size || sha256.Sum256(data) != f.Sum {
		return nil, ErrOtherContent
	}
	return data, nil
}

// Verify returns nil if r is the file of the skill with that URI, as the skill's server lists it.
// The front matter of the skill's own SKILL.md must be the one in the list.
func (it *Item) Verify(uri string, r *mcp.ReadResourceResult) error {
	data, err := it.Manifest.File(uri).Verify(r)
	if err != nil || uri != it.ID {
		return err
	}
	front, _, err := frontmatter.Split(data)
	if err != nil {
		return err
	}
	return frontmatter.Same(front, it.Manifest.front)
}
