package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// A named stream tells what it takes; one that is deaf takes nothing.
type named struct {
	name string
	deaf bool
	told *[]string
}

func (s *named) Notify(method string, params any) bool {
	if s.deaf {
		return false
	}
	*s.told = append(*s.told, fmt.Sprintf("%s takes %s %v", s.name, strings.TrimPrefix(method, "notifications/"), params))
	return true
}

// What is written to which stream, and what waits, step by step.
func TestStoryOfNotices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tools, resources, prompts = mcp.MethodNotificationToolsListChanged, mcp.MethodNotificationResourcesListChanged, mcp.MethodNotificationPromptsListChanged
		var b strings.Builder
		b.WriteString("What is written to which stream, and what waits.\n")
		var told []string
		n := NewNotices()
		step := func(what string, do func()) {
			do()
			synctest.Wait()
			fmt.Fprintf(&b, "\n%s\n", what)
			for _, line := range told {
				b.WriteString("    " + line + "\n")
			}
			told = nil
			n.mu.Lock()
			defer n.mu.Unlock()
			var waits []string
			for _, due := range n.due {
				what := strings.TrimPrefix(due.method, "notifications/")
				if due.uri != "" {
					what += " of " + due.uri
				}
				waits = append(waits, what)
			}
			if waits != nil {
				fmt.Fprintf(&b, "    waits: %s\n", strings.Join(waits, ", "))
			}
		}
		awaits := func() string {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			return fmt.Sprintf("a stream that stays is open: %v; lists are waited for: %v; begun: %v", n.AwaitStream(over), n.Waits(tools), n.Begun())
		}
		stream := func(name string) *named { return &named{name: name, told: &told} }
		leave := make(map[string]func())
		attach := func(s *named, stays bool) func() { return func() { leave[s.name] = n.Attach(s, stays) } }

		step("tools and resources change before the client is ready", func() { n.Tell(tools); n.Tell(resources); n.Tell(tools) })
		step("a stream opens", attach(stream("first"), true))
		step(awaits(), func() {})
		step("the client is ready", n.Begin)
		step(awaits(), func() {})
		step("prompts change", func() { n.Tell(prompts) })
		step("the stream closes, and prompts change", func() { leave["first"](); n.Tell(prompts) })
		step("it closes again", func() { leave["first"]() })
		step(awaits(), func() {})
		step("an answer begins", attach(stream("answer"), false))
		step(awaits(), func() {})
		step("beside it a stream opens, then another answer", func() { attach(stream("second"), true)(); attach(stream("answer 2"), false)() })
		step("tools change", func() { n.Tell(tools) })
		step("the answers end", func() { leave["answer"](); leave["answer 2"]() })
		step(awaits(), func() {})
		step("the stream closes", func() { leave["second"]() })
		step(awaits(), func() {})
		step("resources of two subscriptions are updated", func() {
			n.TellUpdate("mem://a", "mem://a")
			n.TellUpdate("mem://a", "mem://a")
			n.TellUpdate("mem://b", "mem://b/1")
			n.Tell(tools)
		})
		step("one subscription ends", func() { n.ForgetUpdate("mem://a") })
		step("none of no name ends", func() { n.ForgetUpdate("") })
		step("a deaf stream opens", attach(&named{name: "deaf", deaf: true, told: &told}, true))
		step(awaits(), func() {})
		step("one that hears opens", attach(stream("third"), true))
		var ready []func()
		step("the client waits for tools, and tools and resources change", func() {
			ready = append(ready, n.Ask(tools), n.Ask(tools))
			n.Tell(tools)
			n.Tell(resources)
		})
		step(awaits(), func() {})
		step("the first list comes", ready[0])
		step("the second list comes", ready[1])
		step("the client waits for resources, and they change", func() { ready = append(ready, n.Ask(resources)); n.Tell(resources) })
		step("the list comes", ready[2])
		step("the stream closes, and there are more updates than may wait", func() {
			leave["third"]()
			for i := range maxUpdates + 2 {
				n.TellUpdate("mem://c/", fmt.Sprintf("mem://c/%d", i))
			}
			n.TellUpdate("mem://d/", "mem://d/1")
			n.TellLog("a log", 1)
			n.due = slices.Delete(n.due, 1, maxUpdates-1) // the picture has the first, and the last
		})
		step("a stream opens", attach(stream("fourth"), true))
		golden.Compare(t, "notices.golden", b.String())
	})
}
