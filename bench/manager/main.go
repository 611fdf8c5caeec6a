//go:build unix

// Manager measures what a Manager costs as it grows: changes, looks, searches,
// states and the turns of sessions. To compare two versions in one run, it also builds another commit of this
// repository and lets both take turns.
//
//	go -C bench run ./manager [-tools 4000] [-rows REGEXP] [-rounds N] [-against COMMIT] [-corpus DIR]
//	go -C bench run ./manager -goals [-against COMMIT]
//
// With -goals, it measures what has a goal, at the sizes that goals have, and says whether each is met. The
// goals of turns are shares of what they took in the commit 50c6343.
// Times are CPU time of the process, the garbage collector included, and the least of
// all rounds. Tools and queries are made up, and the same in each run. With -corpus, the
// rows on memory take the tools of the folders in DIR, which have a tools.jsonl each.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	pattern := flag.String("rows", "", "measure only rows that match this `regexp`")
	sizes := flag.String("tools", "4000", "`numbers` of tools, 0 for the rows that build")
	rounds := flag.Int("rounds", 3, "how often each program measures")
	against := flag.String("against", "", "compare with this `commit`")
	dir := flag.String("corpus", "", "measure memory with the tools in this `folder`")
	judged := flag.Bool("goals", false, "measure only rows that have a goal, and judge them")
	one := flag.Bool("json", false, "measure once, print JSON and nothing else")
	flag.Parse()
	if *judged {
		*sizes = "4000,40000"
	}
	args := []string{"-json", "-rows", *pattern, "-tools", *sizes, "-corpus", *dir, "-goals=" + strconv.FormatBool(*judged)}
	only, err := regexp.Compile(*pattern)
	wanted := func(row string) bool {
		return only.MatchString(row) && (hasGoal(row) || !*judged)
	}
	switch {
	case err != nil:
	case *one:
		err = json.NewEncoder(os.Stdout).Encode(measure(strings.Split(*sizes, ","), *dir, wanted))
	default:
		var now, old map[string]float64
		if now, old, err = compare(*against, *rounds, args); err != nil {
			break
		}
		write(os.Stdout, now, *against, old)
		if *judged {
			err = allMeasured(now, wanted)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// compare returns the rows of this program and, unless commit is "", of the same program with the
// library of that commit. The programs take turns, and each row is the least of all rounds.
func compare(commit string, rounds int, args []string) (now, old map[string]float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	programs := []string{self}
	if commit != "" {
		dir, err := os.MkdirTemp("", "manager")
		if err != nil {
			return nil, nil, err
		}
		defer os.RemoveAll(dir)
		before, err := build(commit, dir)
		if err != nil {
			return nil, nil, err
		}
		programs = []string{before, self}
	}
	least := make([]map[string]float64, len(programs))
	for range rounds {
		for i, program := range programs {
			cmd := exec.Command(program, args...)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", program, err)
			}
			var rows map[string]float64
			if err := json.Unmarshal(out, &rows); err != nil {
				return nil, nil, err
			}
			if least[i] == nil {
				least[i] = rows
			}
			for name, value := range rows {
				least[i][name] = min(least[i][name], value)
			}
		}
	}
	if commit != "" {
		old = least[0]
	}
	return least[len(least)-1], old, nil
}

// write prints rows, beside those of a commit unless that is "".
func write(out io.Writer, now map[string]float64, commit string, old map[string]float64) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	if commit != "" {
		fmt.Fprintf(w, "\t%s\tnow\tratio\tgoal\t\t\n", commit)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		value := now[name]
		fmt.Fprintf(w, "%s\t", name)
		was, ok := old[name]
		switch {
		case ok:
			fmt.Fprintf(w, "%.1f\t%.1f\t%.1f\t", was, value, was/value)
		case commit != "": // the commit does not have it
			fmt.Fprintf(w, "\t%.1f\t\t", value)
		default:
			fmt.Fprintf(w, "%.1f\t", value)
		}
		fmt.Fprintf(w, "%s\n", judge(name, value, was))
	}
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
	if _, err := run("git", "-C", root, "worktree", "add", "--quiet", "--detach", tree, commit); err != nil {
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
