package mcphybrid

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testsIn returns the tests, examples, benchmarks and fuzz targets of a folder,
// sorted.
func testsIn(t *testing.T, folder string) (names []string) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && regexp.MustCompile(`^(Test|Example|Benchmark|Fuzz)`).MatchString(f.Name.Name) {
				names = append(names, f.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// DESIGNS.md has each row once and in order, and each row names tests that
// exist. A test that is named after a row stands in that row.
func TestDesigns(t *testing.T) {
	t.Parallel()
	var want, got []string
	for group, n := range map[string]int{"A": 16, "B": 7, "C": 7, "D": 10, "E": 6, "F": 10} {
		for i := range n {
			want = append(want, fmt.Sprintf("%s%02d", group, i+1))
		}
	}
	for _, row := range []int{1, 2, 3, 4, 5, 9, 10, 11, 12} { // the others of G are still to come
		want = append(want, fmt.Sprintf("G%02d", row))
	}
	slices.Sort(want)
	doc, err := os.ReadFile("DESIGNS.md")
	require.NoError(t, err)
	folders := make(map[string][]string)
	rowOf := regexp.MustCompile(`^TestSpec([A-G][0-9]+)`)
	named := make(map[string]bool) // row, folder and test
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 3 || !regexp.MustCompile(`^ [A-G][0-9]+ $`).MatchString(cells[1]) {
			continue
		}
		row := strings.TrimSpace(cells[1])
		require.Len(t, cells, 6, "%s: the number of cells", row)
		got = append(got, fmt.Sprintf("%c%02s", row[0], row[1:]))
		assert.NotEmpty(t, strings.TrimSpace(cells[2]), row)
		assert.Contains(t, cells[3], "`", "%s: no test shows it", row)
		for _, cell := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1) {
			m := regexp.MustCompile(`^(?:([a-z/]+)\.)?((?:Test|Example|Benchmark|Fuzz)\w*)(\*?)$`).FindStringSubmatch(cell[1])
			if !assert.NotNil(t, m, "%s: %q is no name of a test", row, cell[1]) {
				continue
			}
			folder, name := filepath.FromSlash("./"+m[1]), m[2]
			if folders[folder] == nil {
				folders[folder] = testsIn(t, folder)
			}
			found := false
			for _, test := range folders[folder] {
				of := rowOf.FindString(test)
				if test == name || m[3] == "*" && of == name {
					found, named[row+" "+folder+" "+test] = true, true
				}
			}
			assert.True(t, found, "%s: there is no %s", row, cell[1])
		}
	}
	assert.Equal(t, want, got)
	for folder, tests := range folders {
		for _, test := range tests {
			if row := rowOf.FindStringSubmatch(test); row != nil {
				assert.True(t, named[row[1]+" "+folder+" "+test], "%s of %s is not in row %s", test, folder, row[1])
			}
		}
	}
}
