package mcphybrid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// maxSchemaShown is how many bytes of a schema the model gets with an error.
const maxSchemaShown = 16 << 10

// maxErrorLength is how many characters of an error the model gets.
const maxErrorLength = 500

// textBadMeta is the answer to a call of a meta tool with bad arguments.
func textBadMeta(kind metaKind, err error) string {
	return fmt.Sprintf("%s was not run: %v. Call it with %s.", kind.name(), err, metaWords[kind].example)
}

// refusalFor returns the text that tells the model why a call has no result. The names in it are known
// from then on.
func (s *Session) refusalFor(v *view, name string, err error) string {
	var unknown *UnknownToolError
	if errors.As(err, &unknown) {
		s.nameKnown(v.toolsNamed(unknown.Nearest))
	}
	var since time.Time
	if t, _ := v.lookup(name); t != nil && errors.Is(err, ErrServerDown) {
		if st, ok := s.tenant.manager.status(t.owner, t.def.Server); ok && st.State == StateDown {
			since = st.Since
		}
	}
	canSearch := v.offers(metaSearch) && (v.searchMode() || len(s.tenant.manager.connectingServers(v.rights)) > 0)
	text := textRefused(name, "called", err, canSearch, since)
	if v.loads && unknown != nil {
		text = textForToolSearch(text)
	}
	return text
}

// textRefused is the answer to a call that did not reach a tool or got no result
// from it, or to a read of a resource. verb is what was not done with it: "called" or
// "read". If the server is down, since says since when; else it is zero.
func textRefused(name, verb string, err error, canSearch bool, since time.Time) string {
	name = text.Line(name, text.MaxName)
	var unknown *UnknownToolError
	var arguments *ArgumentsError
	var permission *permissionError
	var paused *upstream.PausedError
	var login *AuthorizationError
	switch {
	case errors.As(err, &unknown) && unknown.Connecting != "":
		return fmt.Sprintf("%s can't be called yet: its server is still connecting. Go on with something else, and try again later.", name)
	case errors.As(err, &unknown) && unknown.Away != "":
		return fmt.Sprintf("%s can't be called now: its server, %s, is not connected here. Go on without it.", name, text.Line(unknown.Away, text.MaxName))
	case errors.As(err, &unknown) && !unknown.Gone.IsZero():
		return fmt.Sprintf("%s is gone: its server removed it at %s. Go on without it.", name, unknown.Gone.UTC().Format(time.RFC3339))
	case errors.As(err, &unknown) && len(unknown.Nearest) > 0:
		return fmt.Sprintf("There is no tool named %q. Did you mean %s?", name, strings.Join(unknown.Nearest, ", "))
	case errors.Is(err, ErrUnknownTool) && canSearch:
		return fmt.Sprintf("There is no tool named %q. Use a name from the tool list, or find one with %s.", name, SearchToolName)
	case errors.Is(err, ErrUnknownTool):
		return fmt.Sprintf("There is no tool named %q. Use a name from the tool list.", name)
	case errors.As(err, &permission) && permission.writes:
		return fmt.Sprintf("%s was not called: it does not say that it only reads. Call it with %s.", name, CallToolName)
	case errors.As(err, &permission), verb == "read" && errors.Is(err, ErrNotPermitted): // a middleware has its own words
		return fmt.Sprintf("%s was not %s: it is not permitted here. Go on without it.", name, verb)
	case errors.As(err, &arguments):
		return textBadArguments(name, arguments)
	case errors.Is(err, ErrQuarantined):
		return fmt.Sprintf("%s can't be %s: its definition is new or has changed, and a person has not yet agreed to that. Go on without it.", name, verb)
	case errors.Is(err, ErrChanged):
		return fmt.Sprintf("%s was not called: its definition changed while the call waited. Look at the new one, and call it again if it still fits.", name)
	case errors.As(err, &login):
		return fmt.Sprintf("%s can't be %s now: the user has to log in to its server, %s, first. Tell the user so, and go on without it.", name, verb, text.Line(login.Server, text.MaxName))
	case errors.As(err, &paused):
		return fmt.Sprintf("%s was not %s: %v. Its server can be called again from %s on. Go on without it.", name, verb, paused.Reason, paused.Until.UTC().Format(time.RFC3339))
	case errors.Is(err, ErrServerDown) && !since.IsZero():
		return fmt.Sprintf("%s can't be %s now: its server has been down since %s. Go on without it.", name, verb, since.UTC().Format(time.RFC3339))
	case errors.Is(err, ErrServerDown):
		return fmt.Sprintf("%s can't be %s now: its server is down. Go on without it.", name, verb)
	}
	reason, late := strings.CutSuffix(text.Line(err.Error(), maxErrorLength), context.DeadlineExceeded.Error())
	if late {
		return fmt.Sprintf("%s gave no result in time: %s. Try again later, or go on without it.", name, cmp.Or(strings.TrimSuffix(reason, ": "), "it took too long"))
	}
	return fmt.Sprintf("%s gave no result: %s", name, reason)
}

// textBadArguments lists the mistakes in the arguments of a call and shows the
// schema.
func textBadArguments(name string, e *ArgumentsError) string {
	var b strings.Builder
	if e.Repeated > 0 {
		times := "once"
		if e.Repeated > 1 {
			times = fmt.Sprintf("%d times", e.Repeated)
		}
		fmt.Fprintf(&b, "STOP: this very call has already been refused %s, and will be again. Change the arguments as told below, or do without %s.\n", times, name)
	}
	fmt.Fprintf(&b, "%s was not called, because its arguments do not fit its schema:\n", name)
	for _, p := range e.Violations {
		p.Pointer, p.Problem = text.Line(p.Pointer, maxErrorLength), text.Line(p.Problem, maxErrorLength)
		b.WriteString("- " + p.sentence() + "\n")
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "- and %d more, not shown\n", e.More)
	}
	schema := string(e.Schema)
	if part, next := result.Page(schema, 0, maxSchemaShown); next < len(schema) {
		schema = part + "…"
	}
	b.WriteString("The schema: " + schema + "\nCorrect the arguments and call it again.")
	return b.String()
}

// textUnread is the answer to a read of a resource that has no result.
func textUnread(uri string, err error) string {
	uri = text.Line(uri, text.MaxName)
	unknown := new(UnknownResourceError)
	switch {
	case !errors.As(err, &unknown):
		return textRefused(uri, "read", err, false, time.Time{})
	case unknown.Servers != nil:
		return fmt.Sprintf("Several servers have a resource %q. Read it again, and say by \"server\" which one you mean: %s.", uri, text.Line(strings.Join(unknown.Servers, ", "), maxErrorLength))
	case len(unknown.Nearest) > 0:
		return fmt.Sprintf("There is no resource %q. Did you mean %s?", uri, text.Line(strings.Join(unknown.Nearest, ", "), maxErrorLength))
	}
	return fmt.Sprintf("There is no resource %q. Find one with %s, unless a server is still connecting.", uri, ResourceSearchToolName)
}

// textNoSkill says that there is no skill of that name. near are similar names.
func textNoSkill(name string, near []string, canSearch bool) string {
	line := fmt.Sprintf("There is no skill named %q.", text.Line(name, text.MaxName))
	switch {
	case len(near) > 0:
		return line + " Did you mean " + strings.Join(near, ", ") + "?"
	case canSearch:
		return line + " Find one with " + SkillSearchToolName + "."
	}
	return line + " Use a name from the list of skills."
}

// textSkillFailed says why a skill has no text.
func textSkillFailed(name string, err error) string {
	return fmt.Sprintf("The skill %q could not be loaded: %s. Go on without it.", name, text.Line(err.Error(), maxErrorLength))
}

// textNoPage says that a result can't be read on.
func textNoPage(id string) string {
	return fmt.Sprintf("There is no result %q any more: only the last few are kept. Call its tool again if you need it.", text.Line(id, text.MaxName))
}

// textNotSelected answers an expression that can't be used. shape is that of the result, or "".
func textNotSelected(id string, err error, shape string) string {
	if shape == "" {
		return fmt.Sprintf("Nothing was selected in result %s: %s. Read it by offset instead.", id, text.Line(err.Error(), maxErrorLength))
	}
	return fmt.Sprintf("Nothing was selected in result %s: %s. The result is %s.", id, text.Line(err.Error(), maxErrorLength), shape)
}
