package words

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Servers are servers of which search finds tools, or whose tools are not listed.
type Servers []saved.Server

// Counts returns a line for each server.
func (list Servers) Counts() string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "- %d tools of %s\n", s.Tools, text.Line(s.Server, text.MaxName))
	}
	return b.String()
}

// Summary returns a line about the servers, or "" if there are none. It says what each
// server is about. If that exceeds maxTokens it only names the servers, and if that does
// too, it names only the first of them.
func (list Servers) Summary(maxTokens int, count func(string) int) string {
	if len(list) == 0 {
		return ""
	}
	parts := list.parts(true)
	if all := list.summary(parts, len(list)); count(all) <= maxTokens {
		return all
	}
	parts = list.parts(false)
	if all := list.summary(parts, len(list)); count(all) <= maxTokens {
		return all
	}
	named := sort.Search(len(list)-1, func(n int) bool { return count(list.summary(parts, n+1)) > maxTokens })
	return list.summary(parts, named)
}

// parts returns a text on each server, with what it is about if subjects is set.
func (list Servers) parts(subjects bool) []string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = text.Line(s.Server, text.MaxName) + " (" + strconv.Itoa(s.Tools)
		if subjects && s.About != "" {
			parts[i] += ": " + text.Line(s.About, text.MaxName)
		}
		parts[i] += ")"
	}
	return parts
}

// summary returns the line of Summary that has the first n parts.
func (list Servers) summary(parts []string, n int) string {
	total := 0
	for _, s := range list {
		total += s.Tools
	}
	parts = parts[:n:n]
	if more := len(list) - n; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more servers", more))
	}
	return fmt.Sprintf("%d more tools are available from these MCP servers: %s.\n", total, strings.Join(parts, ", "))
}
