// Layers checks that no file of the root uses a file of a layer above its own. The layers
// are those of the table in ARCHITECTURE.md, from below:
//
//	go run ./internal/layers
//
// It prints each use that goes up, and each group of files that use each other in a circle
// and are not of one layer. It is for this project alone.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	code, err := run(".", os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "layers:", err)
	}
	os.Exit(code)
}

// run checks the package in a folder, and returns the exit status: 0, 1 if something is
// wrong, or 2 with an error.
func run(dir string, w io.Writer) (code int, err error) {
	table, err := os.ReadFile(filepath.Join(dir, "ARCHITECTURE.md"))
	if err != nil {
		return 2, err
	}
	ls, err := parse(string(table))
	if err != nil {
		return 2, err
	}
	uses, err := usesOf(dir)
	if err != nil {
		return 2, err
	}
	wrong, err := ls.check(uses, dir)
	if err != nil {
		return 2, err
	}
	for _, line := range wrong {
		fmt.Fprintln(w, line)
	}
	if wrong != nil {
		return 1, nil
	}
	return 0, nil
}
