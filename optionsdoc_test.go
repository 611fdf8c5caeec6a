package mcphybrid

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// defaultsInWords are the defaults of fields of which the zero value, or what it becomes, does
// not say it. All others must be in docs/options.md as they are.
var defaultsInWords = map[string]string{
	"Options.Access":             "all tools",
	"Options.Search.BM25":        fmt.Sprintf("k1 %v, b %v", DefaultK1, DefaultB),
	"Options.Search.Lexicon":     "built in",
	"Options.Search.Threshold":   fmt.Sprint(search.DefaultThreshold),
	"Options.Search.ServerLimit": "no limit",
	"Options.Registry":           "a new one",
	"Options.Tokens":             "bytes/4",
	"Options.TokenStore":         "memory",
	"Options.Logger":             "none",

	"ServerConfig.Name":         "required",
	"ServerConfig.HTTPClient":   "mcphybrid's",
	"ServerConfig.OAuth":        "found out",
	"ServerConfig.Tools":        "all tools",
	"ServerConfig.Prefix":       "the name",
	"ServerConfig.StartTimeout": "`Limits`",
	"ServerConfig.CallTimeout":  "`Limits`",

	"config.OAuth.ClientID":         "registered",
	"config.OAuth.RedirectURI":      "a free port of 127.0.0.1",
	"config.OAuth.Scopes":           "found out",
	"config.OAuth.Resource":         "found out",
	"config.OAuth.MetadataURL":      "found out",
	"config.OAuth.AuthorizationURL": "found out",
	"config.OAuth.TokenURL":         "found out",

	"SessionOptions.Access":     "all tools",
	"SessionOptions.Skills":     "all skills",
	"SessionOptions.Disclosure": "`Automatic`",
	"SessionOptions.Hooks":      "those of `Ask`",

	"UserOptions.Access":        "all tools",
	"UserOptions.SystemResults": fmt.Sprint(defaultSystemResults),
	"UserOptions.UserResults":   fmt.Sprint(defaultUserResults),

	"SearchOptions.Limit":       "`Search.Results`",
	"SearchOptions.By":          "both",
	"SearchOptions.Servers":     "all servers",
	"SearchOptions.ServerLimit": "`Search.ServerLimit`",

	"SemanticOptions.Embedder": "required",
	"SemanticOptions.Store":    "memory",
	"SemanticOptions.Alpha":    "found out",

	"LearnOptions.HalfLife": fmt.Sprintf("%d days", defaultHalfLife/(24*time.Hour)),
	"UsageOptions.HalfLife": fmt.Sprintf("%d days", defaultHalfLife/(24*time.Hour)),

	"config.Options.Dialect":   "recognized",
	"config.Options.Workspace": "the file's folder",
}

// documentedOptions returns the structs that docs/options.md has, with their defaults. Those
// within Options are in its tables.
func documentedOptions() []any {
	var o Options
	o.setDefaults()
	semantic := SemanticOptions{Embedder: newConcepts()}
	semantic.setDefaults()
	var justInTime JustInTimeOptions
	justInTime.setDefaults()
	return []any{o, ServerConfig{}, config.OAuth{}, SessionOptions{}, UserOptions{}, SearchOptions{}, semantic, UsageOptions{}, LearnOptions{}, justInTime, config.Options{}, BM25Options{DefaultK1, DefaultB}}
}

// docs/options.md has every exported field of what a host passes, with its default, and no
// others. The tables of a struct follow the heading with its name, those of Options come first.
func TestOptionsAreDocumented(t *testing.T) {
	t.Parallel()
	want := make(map[string][]string) // what the cell of a field's default may be
	covered := make(map[string]bool)
	page, err := os.ReadFile("docs/options.md")
	require.NoError(t, err)
	text := string(page)
	var fields func(name string, v reflect.Value)
	fields = func(name string, v reflect.Value) {
		covered[documentedName(v.Type())] = true
		for i := range v.NumField() {
			f, field := v.Type().Field(i), name+"."+v.Type().Field(i).Name
			switch {
			case !f.IsExported():
			case isOptions(f.Type.Name()) && f.Type.Kind() == reflect.Struct:
				fields(field, v.Field(i))
				if name == "Options" {
					assert.Regexp(t, "`"+f.Name+"` (is )?an?\\s`"+strings.TrimPrefix(f.Type.String(), "mcphybrid.")+"`", text, "its type is told")
				}
			default:
				want[field] = defaultTexts(field, v.Field(i))
			}
		}
	}
	for _, o := range documentedOptions() {
		fields(documentedName(reflect.TypeOf(o)), reflect.ValueOf(o))
	}
	for field := range defaultsInWords {
		assert.Contains(t, want, field, "defaultsInWords")
	}

	got, of := make(map[string]string), "Options"
	note := regexp.MustCompile(` \([^)]*\)$`)
	for _, line := range strings.Split(text, "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok && isOptions(heading) {
			of = heading
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		names := regexp.MustCompile("`([\\w.]+)`").FindAllStringSubmatch(cells[0], -1)
		defaults := []string{cells[1]}
		if len(names) > 1 {
			defaults = strings.Split(cells[1], ", ")
		}
		if len(defaults) == 1 {
			defaults = slices.Repeat(defaults, len(names))
		}
		require.Len(t, defaults, len(names), line)
		for i, name := range names {
			assert.NotContains(t, got, of+"."+name[1], "it is there twice")
			got[of+"."+name[1]] = note.ReplaceAllString(defaults[i], "")
		}
	}
	for _, field := range slices.Sorted(maps.Keys(want)) {
		if cell, ok := got[field]; assert.True(t, ok, "%s has no row", field) {
			assert.Contains(t, want[field], cell, field)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(got)) {
		assert.Contains(t, slices.Sorted(maps.Keys(want)), field, "there is no such field")
	}
	for _, name := range declaredOptions(t) {
		assert.True(t, covered[name], "%s is in no table", name)
	}
}

func isOptions(name string) bool {
	return regexp.MustCompile(`(Options|Config|Limits)$|^config\.`).MatchString(name)
}

// documentedName returns how the page writes the name of a type.
func documentedName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[ServerConfig]():
		return "ServerConfig"
	case t.PkgPath() == reflect.TypeFor[ServerConfig]().PkgPath():
		return "config." + t.Name()
	}
	return t.Name()
}

// declaredOptions returns the names of the exported structs with which a host configures
// something.
func declaredOptions(t *testing.T) (names []string) {
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() && isOptions(spec.Name.Name) {
				names = append(names, spec.Name.Name)
			}
			return true
		})
	}
	require.NotEmpty(t, names)
	return names
}

// defaultTexts returns how a page may write the default of a field.
func defaultTexts(field string, v reflect.Value) []string {
	if text, ok := defaultsInWords[field]; ok {
		return []string{text}
	}
	if d, ok := v.Interface().(time.Duration); ok && d > 0 {
		var texts []string
		for unit, name := range map[time.Duration]string{time.Second: "s", time.Minute: "min", 24 * time.Hour: "day"} {
			texts = append(texts, fmt.Sprintf("%v %s", float64(d)/float64(unit), name))
		}
		return texts
	}
	switch v.Kind() {
	case reflect.Bool:
		return []string{fmt.Sprint(v)}
	case reflect.Int:
		return numberTexts(int(v.Int()))
	}
	if v.IsZero() {
		return []string{"none"}
	}
	if v.Kind() == reflect.String {
		return []string{"`" + v.String() + "`"}
	}
	return []string{fmt.Sprint(v)}
}

func numberTexts(n int) []string {
	switch {
	case n == 0:
		return []string{"none"}
	case n == math.MaxInt:
		return []string{"no limit"}
	case n%(1<<20) == 0:
		return []string{fmt.Sprintf("%d MiB", n>>20)}
	case n%(1<<10) == 0:
		return []string{fmt.Sprintf("%d KiB", n>>10)}
	}
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return []string{text, text + " bytes"}
}
