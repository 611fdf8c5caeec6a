//go:build unix

// Manager measures what a Manager costs as it grows: changes, looks, searches,
// states and the turns of sessions. To compare two versions in one run, it also builds another commit of this
// repository and lets both take turns.
//
//	go -C bench run ./manager [-tools 4000] [-rows REGEXP] [-rounds N] [-against COMMIT] [-corpus DIR]
//
// Times are CPU time of the process, the garbage collector included, and the least of
// all rounds. Tools and queries are made up, and the same in each run. With -corpus, the
// rows on memory take the tools of the folders in DIR, which have a tools.jsonl each.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	pattern := flag.String("rows", "", "measure only rows that match this `regexp`")
	sizes := flag.String("tools", "4000", "`numbers` of tools, 0 for the rows that build")
	rounds := flag.Int("rounds", 3, "how often each program measures")
	against := flag.String("against", "", "compare with this `commit`")
	dir := flag.String("corpus", "", "measure memory with the tools in this `folder`")
	one := flag.Bool("json", false, "measure once, print JSON and nothing else")
	flag.Parse()
	args := []string{"-json", "-rows", *pattern, "-tools", *sizes, "-corpus", *dir}
	only, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
	case *one:
		err = json.NewEncoder(os.Stdout).Encode(measure(strings.Split(*sizes, ","), only, *dir))
	default:
		err = compare(*against, *rounds, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// compare prints the rows of this program, and of the same program with the library
// of a commit unless that is "".
func compare(commit string, rounds int, args []string) error {
	var programs []string
	if commit != "" {
		dir, err := os.MkdirTemp("", "manager")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		old, err := build(commit, dir)
		if err != nil {
			return err
		}
		programs = append(programs, old)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	programs = append(programs, self)
	least := make([]map[string]float64, len(programs))
	for range rounds {
		for i, program := range programs {
			cmd := exec.Command(program, args...)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s: %w", program, err)
			}
			var rows map[string]float64
			if err := json.Unmarshal(out, &rows); err != nil {
				return err
			}
			if least[i] == nil {
				least[i] = rows
			}
			for name, value := range rows {
				least[i][name] = min(least[i][name], value)
			}
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	if commit == "" {
		for _, name := range slices.Sorted(maps.Keys(least[0])) {
			fmt.Fprintf(w, "%s\t%.1f\t\n", name, least[0][name])
		}
		return nil
	}
	fmt.Fprintf(w, "\t%s\tnow\tratio\t\n", commit)
	for _, name := range slices.Sorted(maps.Keys(least[1])) {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t\n", name, least[0][name], least[1][name], least[0][name]/least[1][name])
	}
	return nil
}

// build builds this program with the library of a commit and returns its path in dir.
func build(commit, dir string) (string, error) {
	run := func(args ...string) (string, error) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	root, err := run("git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	tree := filepath.Join(dir, "tree")
	if _, err := run("git", "-C", root, "worktree", "add", "--detach", tree, commit); err != nil {
		return "", err
	}
	defer func() { _, _ = run("git", "-C", root, "worktree", "remove", "--force", tree) }()
	bench, mod, program := filepath.Join(root, "bench"), filepath.Join(dir, "go.mod"), filepath.Join(dir, "old")
	for from, to := range map[string]string{"go.mod": mod, "go.sum": filepath.Join(dir, "go.sum")} {
		data, err := os.ReadFile(filepath.Join(bench, from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return "", err
		}
	}
	if _, err := run("go", "mod", "edit", "-replace", "github.com/mcphybrid/mcphybrid="+tree, "-replace", "github.com/mcphybrid/mcphybrid/tiktoken="+filepath.Join(tree, "tiktoken"), mod); err != nil {
		return "", err
	}
	_, err = run("go", "build", "-C", bench, "-mod=mod", "-modfile", mod, "-tags", "before", "-o", program, "./manager")
	return program, err
}
