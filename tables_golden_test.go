package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/request"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/mcphybrid/mcphybrid/store"
)

// A factTable has inputs and what comes of each, for a person to check.
type factTable struct{ story }

// compareTable compares what script tells with testdata/tables/NAME.golden.
func compareTable(t *testing.T, name, about string, script func(*factTable)) {
	t.Helper()
	of := &factTable{story{T: t, begun: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	of.out.WriteString(about + "\n\n")
	script(of)
	golden.Compare(t, "tables/"+name+".golden", of.out.String())
}

// row tells of an input and its outputs.
func (t *factTable) row(input string, outputs ...any) {
	t.out.WriteString(input + "\n")
	for _, v := range outputs {
		if line, ok := v.(string); ok {
			t.out.WriteString("    " + strings.ReplaceAll(line, "\n", `\n`) + "\n")
			continue
		}
		t.out.WriteString("    " + strings.ReplaceAll(t.show(v), "\n", "\n    ") + "\n")
	}
}

// panics returns with what f panics.
func panics(f func()) (with string) {
	defer func() {
		if p := recover(); p != nil {
			with = fmt.Sprint("panic: ", p)
		}
	}()
	f()
	return "no panic"
}

// The line that a log has of each event.
func TestEventLines(t *testing.T) {
	compareTable(t, "eventlines", "Each event, and its line in a log.", func(table *factTable) {
		s := &Session{asked: &noWishes}
		for _, e := range []Event{
			{Kind: EventCall, Session: s, Tools: []string{"mcp_a__b"}, Server: "a", Took: time.Second, Label: "one", User: "ann"},
			{Kind: EventCall, Session: s, Tools: []string{"mcp_a__b"}, Server: "a", ToolError: "secret answer"},
			{Kind: EventCall, Session: s, Tools: []string{"mcp_a__c"}, Err: ErrUnknownTool, ToolError: "both"},
			{Kind: EventCall, Session: s, Tools: nil},
			{Kind: EventSearch, Session: s, Tools: []string{"mcp_a__b", "mcp_a__c"}, Query: "b or c", Took: time.Millisecond},
			{Kind: EventSearch, Session: s},
			{Kind: EventRead, Session: s, Server: "a", Query: "note://1"},
			{Kind: EventActivate, Session: s, Tools: []string{"mcp_a__b"}, Query: "not logged"},
			{Kind: EventEvict, Session: s, Tools: []string{"mcp_a__b"}},
			{Kind: EventFull, Session: s, Tools: []string{"mcp_a__b"}},
			{Kind: EventBegin, Session: s, Disclosure: ByBridge, Why: "the host asked for it"},
			{Kind: EventBegin, Session: s},
			{Kind: EventWaiting, Session: s, Tools: []string{"mcp_a__b"}},
			{Kind: EventCacheLost, Session: s, Loss: snapshot.Loss{Tokens: 5000, Cause: snapshot.LossTools, Miss: "tools_changed"}, Label: "one"},
			{Kind: EventCacheLost, Session: s, Tools: []string{"none"}, Loss: snapshot.Loss{Tokens: 1, Cause: snapshot.LossPause}},
			{Kind: EventServer, Server: "a", State: StateConnecting},
			{Kind: EventServer, Server: "a", State: StateReady, Took: time.Minute, User: "ann"},
			{Kind: EventServer, Server: "a", State: StateDown, Err: errOfStory},
			{Kind: EventChanged, Server: "a", Tools: []string{"mcp_a__b"}, Err: ErrQuarantined},
			{Kind: EventStore, Store: "Cache", Err: store.ErrUnavailable},
			{Kind: EventStore, Store: "Cache", Took: time.Hour},
		} {
			for _, level := range []slog.Level{slog.LevelDebug, slog.LevelError} {
				before := len(table.heard)
				LogEvents(table.options(Options{}).Logger, level)(e)
				for _, line := range table.heard[before:] {
					table.row(table.show(e), line.text)
				}
			}
		}
	})
}

// What people are shown of each event, where it is kept.
func TestEventRecords(t *testing.T) {
	compareTable(t, "eventrecords", "Each event, and what is kept of it: in sessions, of servers.", func(table *factTable) {
		s := &Session{asked: &noWishes}
		many := func(n int) (names []string) {
			for i := range n {
				names = append(names, fmt.Sprint("t", i))
			}
			return names
		}
		long := strings.Repeat("long ", 500)
		for _, e := range []Event{
			{Kind: EventCall, Session: s, Tools: many(1), Server: "a", Took: time.Second, Label: "one\ntwo", User: "ann", ToolError: "no\nway"},
			{Kind: EventCall, Session: s, Tools: many(20), Err: fmt.Errorf("mcphybrid: tool %q: %w", "x", ErrServerDown)},
			{Kind: EventCall, Session: s, Tools: many(21), Err: errors.New("mcphybrid: x")},
			{Kind: EventActivate, Session: s, Tools: many(1)},
			{Session: s},
			{Kind: EventSearch, Session: s, Query: long},
			{Kind: EventBegin, Session: s, Disclosure: ByProvider, Why: "why"},
			{Kind: EventBegin, Session: s},
			{Kind: EventRead, Session: s, Disclosure: ByBridge, Query: "note://1"},
			{Kind: EventCacheLost, Session: s, Loss: snapshot.Loss{At: table.begun.Add(time.Second), Tokens: 3, Cause: snapshot.LossPause, Miss: "mi\nss"}},
			{Kind: EventServer, Server: "a", State: StateConnecting, User: "ann"},
			{Kind: EventServer, Server: "a", State: StateReady, Took: time.Second, Err: errOfStory},
			{Kind: EventServer, Server: "a", State: StateDown, Err: errors.New("mcphybrid: exit status 1")},
			{Kind: EventServer, Server: "a", State: StateUnauthorized, Err: &AuthorizationError{Server: "a", URL: "https://a"}},
			{Kind: EventServer, Server: "a", State: StateUnauthorized, Err: tokenError{&AuthorizationError{Server: "a", URL: "https://a"}, cause.ErrToken}},
			{Kind: EventChanged, Server: "a", Tools: many(2), Err: &ChangedError{Server: "a", Tool: "t", Kind: "tool", Name: "t0", Is: "0123456789abcdef"}},
			{Kind: EventStore, Store: "Cache", Err: store.ErrUnavailable},
		} {
			r := newRecorder()
			s.number = 0
			r.record(e)
			var inSessions, ofServers []snapshot.Event
			for _, list := range []struct {
				to   *[]snapshot.Event
				from []snapshot.Event
			}{{&inSessions, r.events.All()}, {&ofServers, r.ofServers.All()}} {
				for _, kept := range list.from {
					if !kept.At.IsZero() {
						kept.At = table.begun
					}
					*list.to = append(*list.to, kept)
				}
			}
			input := table.show(e)
			table.row(input[:min(len(input), 200)], fmt.Sprint("number ", s.number), inSessions, ofServers)
		}
	})
}

// What servers enter again and again is one event, of each server of each user.
func TestRepeatedEventsOfServers(t *testing.T) {
	compareTable(t, "repeatedevents", "States that servers enter one after the other, and the events that are left, newest first.", func(table *factTable) {
		type entered struct {
			server, user string
			state        State
			err          error
		}
		away := errors.New("no disk")
		for _, of := range [][]entered{
			{{"a", "", StateConnecting, nil}, {"a", "", StateDown, away}, {"a", "", StateConnecting, nil}, {"a", "", StateDown, away}, {"a", "", StateConnecting, nil}, {"a", "", StateReady, nil}},
			{{"a", "", StateDown, away}, {"b", "", StateDown, away}, {"a", "", StateDown, away}, {"b", "", StateDown, away}},
			{{"a", "ann", StateDown, away}, {"a", "", StateDown, away}, {"a", "ann", StateDown, away}},
			{{"a", "", StateUnauthorized, ErrAuthorizationRequired}, {"a", "", StateConnecting, nil}, {"a", "", StateUnauthorized, ErrAuthorizationRequired}, {"a", "", StateDown, away}},
			{{"a", "", StateReady, nil}, {"a", "", StateReady, nil}, {"a", "", StateDegraded, away}, {"a", "", StateDegraded, away}},
			{{"a", "", StateConnecting, nil}, {"a", "", StateConnecting, nil}, {"a", "", StateReady, nil}},
		} {
			r := newRecorder()
			input := ""
			for _, e := range of {
				input += fmt.Sprintf(" %s/%s %s;", e.user, e.server, e.state)
				r.record(Event{Kind: EventServer, Server: e.server, User: e.user, State: e.state, Err: e.err})
			}
			var left []any
			for _, e := range r.ofServers.All() {
				left = append(left, fmt.Sprintf("%s/%s %s, %d times, since before %t, %s", e.User, e.Server, e.State, e.Times, !e.First.IsZero() && !e.First.After(e.At), e.Cause.What))
			}
			table.row(input, left...)
		}
	})
}

// What is hidden when a server leaves, in whose events.
func TestSecretsInEvents(t *testing.T) {
	compareTable(t, "secretevents", "Events after the secrets of a server of ann are hidden.", func(table *factTable) {
		r := newRecorder()
		texts := "the-secret-token-1"
		tools := []string{texts, "other"}
		for _, user := range []string{"ann", "bea"} {
			for _, e := range []Event{
				{Kind: EventCall, Session: &Session{asked: &noWishes}, Tools: tools, Server: texts, Query: texts, Label: texts, Err: errors.New(texts), ToolError: texts, Loss: snapshot.Loss{Miss: texts}, Store: texts, Why: "why", User: user},
				{Kind: EventServer, State: StateDown, Server: texts, Err: errors.New("exit status 1, " + texts), User: user},
			} {
				r.record(e)
			}
		}
		r.hide([]string{texts}, func(e snapshot.Event) bool { return e.User == "ann" })
		for _, e := range slices.Concat(r.events.All(), r.ofServers.All()) {
			e.At = table.begun
			table.row(e.Kind+" of "+e.User, e)
		}
		table.row("the caller's", tools)
	})
}

// The defaults of the options, and what is no option.
func TestOptionsTable(t *testing.T) {
	compareTable(t, "options", "Options, and what becomes of them: those that are neither zero nor the default.", func(table *factTable) {
		var standard Options
		standard.setDefaults()
		dump := func(o Options) (lines []any) {
			o.setDefaults()
			var walk func(name string, v, than reflect.Value)
			walk = func(name string, v, than reflect.Value) {
				switch v.Kind() {
				case reflect.Struct:
					for i := range v.NumField() {
						if f := v.Type().Field(i); f.IsExported() || f.Name == "deferring" {
							walk(name+"."+f.Name, v.Field(i), than.Field(i))
						}
					}
				case reflect.Int, reflect.Int64, reflect.Float64, reflect.String, reflect.Bool:
					if !v.Equal(than) {
						lines = append(lines, fmt.Sprintf("%s = %v", name[1:], v))
					}
				}
			}
			walk("", reflect.ValueOf(o), reflect.ValueOf(standard))
			if o.JustInTime != nil {
				lines = append(lines, *o.JustInTime)
			}
			return lines
		}
		table.row("none: all", table.show(standard.Inline)+fmt.Sprint(" deferring=", standard.Inline.deferring), standard.List, standard.Active, standard.Prompt, standard.Search, standard.Limits, standard.SkillListing, fmt.Sprint(standard.MaxResult, standard.MaxKept, standard.MaxMedia, standard.MaxState, standard.StateVersion), standard.EnrichTimeout, fmt.Sprint(standard.Ask.MaxPerCall, standard.Ask.MaxAtOnce, standard.Ask.MaxBytes, standard.Ask.Timeout), standard.Trust)
		for name, o := range map[string]Options{
			"Inline.Max 1":                     {Inline: InlineOptions{Max: 1}},
			"Inline.Max -1":                    {Inline: InlineOptions{Max: -1}},
			"Inline.Max 90":                    {Inline: InlineOptions{Max: 90}},
			"Inline.Max NoLimit":               {Inline: InlineOptions{Max: NoLimit}},
			"Inline.MaxTokens 1":               {Inline: InlineOptions{MaxTokens: 1}},
			"Inline.MaxTokens -1":              {Inline: InlineOptions{MaxTokens: -1}},
			"Inline.MaxTokens 100000":          {Inline: InlineOptions{MaxTokens: 100_000}},
			"Inline.MaxTokens NoLimit":         {Inline: InlineOptions{MaxTokens: NoLimit}},
			"Inline.ContextWindow 1":           {Inline: InlineOptions{ContextWindow: 1}},
			"Inline.ContextWindow 10000":       {Inline: InlineOptions{ContextWindow: 10_000}},
			"Inline.ContextWindow 10000 of 5":  {Inline: InlineOptions{ContextWindow: 10_000, MaxTokens: 5}},
			"Inline.ContextWindow 10000 of -1": {Inline: InlineOptions{ContextWindow: 10_000, MaxTokens: -1}},
			"Inline.ContextWindow 10000 half":  {Inline: InlineOptions{ContextWindow: 10_000, Share: 0.5}},
			"Inline.ContextWindow 10000 all":   {Inline: InlineOptions{ContextWindow: 10_000, Share: 1}},
			"Inline.ContextWindow NoLimit":     {Inline: InlineOptions{ContextWindow: NoLimit, Share: 1}},
			"Inline.ContextWindow -1":          {Inline: InlineOptions{ContextWindow: -1}},
			"Inline.ContextWindow 1000000":     {Inline: InlineOptions{ContextWindow: 1_000_000}},
			"Inline.Share 0":                   {Inline: InlineOptions{Share: 0}},
			"Inline.Share -0.1":                {Inline: InlineOptions{Share: -0.1}},
			"Inline.Share 1.1":                 {Inline: InlineOptions{Share: 1.1}},
			"Inline.Share NaN":                 {Inline: InlineOptions{Share: math.NaN()}},
			"List.Max 1":                       {List: ListOptions{Max: 1}},
			"List.Max -1":                      {List: ListOptions{Max: -1}},
			"List.Max 101":                     {List: ListOptions{Max: 101}},
			"List.MaxTokens 7":                 {List: ListOptions{MaxTokens: 7}},
			"List.ServerMax 3":                 {List: ListOptions{ServerMax: 3, ServerTokens: 5}},
			"Active.Max 100":                   {Active: ActiveOptions{Max: 100, Turns: 3}},
			"Active.Max -1":                    {Active: ActiveOptions{Max: -1, Turns: -1}},
			"Active.Max NoLimit":               {Active: ActiveOptions{Max: NoLimit}},
			"Prompt -1":                        {Prompt: PromptOptions{MaxDescription: -1, MaxListingTokens: -1, MaxSummaryTokens: -1}},
			"Prompt 1":                         {Prompt: PromptOptions{MaxDescription: 1, MaxListingTokens: 1, MaxSummaryTokens: 1}},
			"SkillListing -1":                  {SkillListing: SkillListingOptions{Max: -1, MaxTokens: -1}},
			"SkillListing 2":                   {SkillListing: SkillListingOptions{Max: 2, MaxTokens: 3}},
			"MaxResult 10":                     {MaxResult: 10},
			"MaxResult NoLimit":                {MaxResult: NoLimit},
			"MaxResult -1":                     {MaxResult: -1},
			"MaxKept -1":                       {MaxKept: -1},
			"MaxMedia -1":                      {MaxMedia: -1},
			"MaxState -1":                      {MaxState: -1},
			"StateVersion oldest":              {StateVersion: saved.Oldest},
			"StateVersion too old":             {StateVersion: saved.Oldest - 1},
			"StateVersion too new":             {StateVersion: saved.Newest + 1},
			"Search.Results 1":                 {Search: RankingOptions{Results: 1}},
			"Search.Results 100":               {Search: RankingOptions{Results: 100}},
			"Search.Results -1":                {Search: RankingOptions{Results: -1}},
			"Search.Limit -1":                  {Search: RankingOptions{Limit: -1}},
			"Search.Limit 1":                   {Search: RankingOptions{Limit: 1}},
			"Search.Threshold NaN":             {Search: RankingOptions{Threshold: math.NaN()}},
			"Search.Threshold inf":             {Search: RankingOptions{Threshold: math.Inf(1)}},
			"Search.Threshold -inf":            {Search: RankingOptions{Threshold: math.Inf(-1)}},
			"Search.Threshold -1":              {Search: RankingOptions{Threshold: -1}},
			"Search.Schemas -1":                {Search: RankingOptions{Schemas: -1}},
			"Search.Ranker none":               {Search: RankingOptions{Ranker: "none"}},
			"Search.Ranker classic":            {Search: RankingOptions{Ranker: RankerClassic}},
			"Search.BM25 b 2":                  {Search: RankingOptions{BM25: &BM25Options{K1: 1, B: 2}}},
			"Trust none":                       {Trust: "none"},
			"Trust approve":                    {Trust: TrustApprove},
			"JustInTime":                       {JustInTime: &JustInTimeOptions{}},
			"JustInTime 500":                   {JustInTime: &JustInTimeOptions{Threshold: 500}},
			"Extensions that are no JSON":      {Extensions: map[string]any{"x": math.NaN()}},
			"Limits -1 of times":               {Limits: config.Limits{IdleTimeout: -1, Reconnect: -1, Refresh: -1, MaxTimeouts: -1}},
			"Limits.StartTimeout -1":           {Limits: config.Limits{StartTimeout: -1}},
			"Limits.CallTimeout -1":            {Limits: config.Limits{CallTimeout: -1}},
			"EnrichTimeout -1":                 {EnrichTimeout: -1},
			"Ask.Timeout -1":                   {Ask: ask.Options{Timeout: -1}},
			"Ask -1":                           {Ask: ask.Options{MaxPerCall: -1, MaxAtOnce: -1, MaxBytes: -1}},
			"Limits.MaxMessage -1":             {Limits: config.Limits{MaxMessage: -1}},
			"Limits.MaxValues -1":              {Limits: config.Limits{MaxValues: -1}},
			"Limits.MaxDefinition -1":          {Limits: config.Limits{MaxDefinition: -1}},
			"Limits.MaxTools -1":               {Limits: config.Limits{MaxTools: -1}},
			"Limits.MaxPages -1":               {Limits: config.Limits{MaxPages: -1}},
			"Limits.MaxListing -1":             {Limits: config.Limits{MaxListing: -1}},
			"Limits.MaxCatalog -1":             {Limits: config.Limits{MaxCatalog: -1}},
			"Limits.MaxSubscriptions -1":       {Limits: config.Limits{MaxSubscriptions: -1}},
			"Limits.MaxUnasked -1":             {Limits: config.Limits{MaxUnasked: -1}},
		} {
			var lines []any
			if with := panics(func() { lines = dump(o) }); with != "no panic" {
				lines = []any{with}
			}
			table.rowLater(name, lines...)
		}
		table.sortRows()
		for _, half := range []time.Duration{-1, 0, 1} {
			table.row(fmt.Sprint("Usage.HalfLife ", int(half)), panics(func() { (&UsageOptions{HalfLife: half}).record() }))
			table.row(fmt.Sprint("Learn.HalfLife ", int(half)), panics(func() { (&LearnOptions{HalfLife: half}).record() }))
		}
		table.row("no records", (*UsageOptions)(nil).record() == nil, (*LearnOptions)(nil).record() == nil)
	})
}

// rowLater and sortRows tell the rows of a map in the order of their inputs.
func (t *factTable) rowLater(input string, outputs ...any) {
	of := &factTable{story{T: t.T, begun: t.begun}}
	of.row(input, outputs...)
	t.last = append(t.last, of.out.String())
}

func (t *factTable) sortRows() {
	slices.Sort(t.last)
	t.out.WriteString(strings.Join(t.last, ""))
	t.last = nil
}

// What of the host's the options take, and what they copy.
func TestOptionsAreCopied(t *testing.T) {
	compareTable(t, "copiedoptions", "What a host passes stays its own: it is changed after the Manager was made, and the Manager has what it was.", func(table *factTable) {
		spare := func(names ...string) []string { return append(make([]string, 0, 8), names...) }
		o := Options{Pins: spare("p"), Access: Access{Allow: spare("mcp_*"), Deny: spare("d")}, Needs: map[string][]string{"n": spare("m")}, Rules: append(make([]Rule, 0, 4), Rule{Name: "r", Patterns: spare("x"), Action: RuleExclude}),
			Servers: append(make([]ServerConfig, 0, 4), inProcess("a", 1)), Extensions: map[string]any{"e": map[string]any{"f": 1}}, Search: RankingOptions{BM25: &BM25Options{K1: 1, B: 0.5}},
			JustInTime: &JustInTimeOptions{Threshold: 7, Results: 3}, Usage: &UsageOptions{HalfLife: time.Hour}, Learn: &LearnOptions{HalfLife: time.Hour}}
		m := NewManager(&o)
		defer m.Close()
		o.Pins[0], o.Access.Deny[0], o.Access.Allow[0], o.Needs["n"][0], o.Rules[0].Name, o.Servers[0].Name = "changed", "changed", "changed", "changed", "changed", "changed"
		o.Needs["more"], o.Extensions["e"].(map[string]any)["f"], o.Extensions["more"] = nil, 2, 3
		o.Search.BM25.B, o.JustInTime.Threshold, o.Usage.HalfLife, o.Learn.HalfLife = 0.9, 1, 1, 1
		has := m.opts
		table.row("Pins", has.Pins)
		table.row("Access", has.Access)
		table.row("Needs", has.Needs)
		table.row("Rules", has.Rules[0].Name)
		table.row("Servers", has.Servers[0].Name, m.Servers()[0].Name)
		table.row("Extensions", has.Extensions)
		table.row("BM25", *has.Search.BM25)
		table.row("JustInTime", *has.JustInTime)
		table.row("Usage and Learn", has.Usage.HalfLife, has.Learn.HalfLife)
		table.row("Problems", m.Problems())
	})
}

// What definitions of servers become.
func TestDefinitionsTable(t *testing.T) {
	compareTable(t, "definitions", "An element of tools/list, and what it becomes, or why it can't be used.", func(table *factTable) {
		many := func(n int) string { return strings.Repeat(`"t",`, n-1) + `"t"` }
		for _, raw := range []string{
			`{"name":"a"}`, `{"name":"a","inputSchema":{"type":"object"}}`, `{"name":"a","inputSchema":null}`, `{"name":"a","inputSchema":[]}`, `{"name":"a","inputSchema":"x"}`, `{"name":"a","inputSchema": { "type" : "object" } }`,
			``, `null`, `[]`, `"a"`, `{`, `{"name":"a"} `, `{"name":"a"}x`, `{}`, `{"name":""}`, `{"name":null}`, `{"name":5}`, `{"name":"a","name":"b"}`, `{"name":"é\n"}`,
			`{"name":"a","description":"D"}`, `{"name":"a","description":null}`, `{"name":"a","description":5}`, `{"name":"a","description":"x","description":"y"}`,
			`{"name":"a","title":"T"}`, `{"name":"a","title":5}`, `{"name":"a","title":"x","title":"y"}`,
			`{"name":"a","annotations":{"readOnlyHint":true}}`, `{"name":"a","annotations":{"idempotentHint":true}}`, `{"name":"a","annotations":{"readOnlyHint":true,"destructiveHint":true}}`, `{"name":"a","annotations":{"readOnlyHint":"yes","title":"T"}}`, `{"name":"a","annotations":[]}`, `{"name":"a","annotations":null}`,
			`{"name":"a","annotations":{"readOnlyHint":true,"readOnlyHint":false}}`, `{"name":"a","annotations":{"title":"x","title":"y"}}`, `{"name":"a","annotations":{"destructiveHint":true,"destructiveHint":true}}`, `{"name":"a","annotations":{"idempotentHint":true,"idempotentHint":true}}`, `{"name":"a","annotations":{"openWorldHint":true,"openWorldHint":true}}`, `{"name":"a","annotations":{},"annotations":{}}`, `{"name":"a","inputSchema":{},"inputSchema":{}}`, `{"name":"a","outputSchema":{},"outputSchema":{}}`, `{"name":"a","execution":{},"execution":{}}`, `{"name":"a","_meta":{},"_meta":{}}`,
			`{"name":"a","execution":{"taskSupport":"required"}}`, `{"name":"a","execution":{"taskSupport":"optional"}}`, `{"name":"a","execution":null}`, `{"name":"a","execution":[]}`, `{"name":"a","execution":{"taskSupport":5}}`,
			`{"name":"a","outputSchema":{"type":"object"}}`, `{"name":"a","outputSchema":null}`, `{"name":"a","outputSchema":[]}`, `{"name":"a","outputSchema":{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"pattern":"(?<x>"}}}}`, `{"name":"a","outputSchema":{"$ref":"http://elsewhere/x"}}`,
			`{"name":"a","_meta":null}`, `{"name":"a","_meta":5}`, `{"name":"a","_meta":{}}`, `{"name":"a","_meta":{"anthropic/alwaysLoad":true}}`, `{"name":"a","_meta":{"anthropic/alwaysLoad":"yes"}}`, `{"name":"a","_meta":{"anthropic/alwaysLoad":false}}`,
			`{"name":"a","_meta":{"anthropic/searchHint":"words"}}`, `{"name":"a","_meta":{"anthropic/searchHint":5,"anthropic/alwaysLoad":true}}`, `{"name":"a","_meta":{"anthropic/searchHint":"` + strings.Repeat("x", 499) + `é"}}`, `{"name":"a","_meta":{"anthropic/searchHint":"` + strings.Repeat("x", 500) + `"}}`, `{"name":"a","_meta":{"anthropic/searchHint":"` + strings.Repeat("x", 501) + `"}}`,
			`{"name":"a","_meta":{"mcphybrid/needs":["b","c"]}}`, `{"name":"a","_meta":{"mcphybrid/needs":[]}}`, `{"name":"a","_meta":{"mcphybrid/needs":null}}`, `{"name":"a","_meta":{"mcphybrid/needs":"b"}}`, `{"name":"a","_meta":{"mcphybrid/needs":[5]}}`, `{"name":"a","_meta":{"mcphybrid/needs":[` + many(32) + `]}}`, `{"name":"a","_meta":{"mcphybrid/needs":[` + many(33) + `]}}`,
			`{"name":"a","_meta":{"ui":{"visibility":["model"]}}}`, `{"name":"a","_meta":{"ui":{"visibility":["app"],"resourceUri":"ui://page"}}}`, `{"name":"a","_meta":{"ui":{"visibility":[]}}}`, `{"name":"a","_meta":{"ui":{"visibility":null}}}`, `{"name":"a","_meta":{"ui":{"visibility":"app"}}}`, `{"name":"a","_meta":{"ui":{"visibility":[5]}}}`, `{"name":"a","_meta":{"ui":{"visibility":["other"]}}}`, `{"name":"a","_meta":{"ui":[]}}`, `{"name":"a","_meta":{"ui":null}}`, `{"name":"a","_meta":{"ui":"x"}}`,
			`{"name":"a","_meta":{"ui":{"visibility":["app"],"visibility":["model"]}}}`, `{"name":"a","_meta":{"ui":{"resourceUri":"ui://a","resourceUri":"ui://b"}}}`, `{"name":"a","_meta":{"ui":{},"ui":{}}}`, `{"name":"a","_meta":{"ui/resourceUri":"ui://a","ui/resourceUri":"ui://b"}}`,
			`{"name":"a","_meta":{"ui/resourceUri":"ui://old"}}`, `{"name":"a","_meta":{"ui/resourceUri":"ui://old","ui":{"resourceUri":"ui://new"}}}`, `{"name":"a","_meta":{"ui/resourceUri":"ui://old","ui":{"resourceUri":null}}}`, `{"name":"a","_meta":{"ui":{"resourceUri":"http://a"}}}`, `{"name":"a","_meta":{"ui":{"resourceUri":5}}}`, `{"name":"a","_meta":{"ui":{"resourceUri":"ui://a\nb"}}}`, `{"name":"a","_meta":{"ui":{"resourceUri":"ui://` + strings.Repeat("x", 995) + `"}}}`, `{"name":"a","_meta":{"ui":{"resourceUri":"ui://` + strings.Repeat("x", 996) + `"}}}`,
		} {
			d, err := parseDefinition("s", json.RawMessage(raw), 2000)
			var again *BridgeTool
			var outputs []any
			if err == nil {
				again = &BridgeTool{name: "mcp_s__a", def: d}
				d.registered = "mcp_s__a"
				first := string(again.OutputSchema())
				line := fmt.Sprintf("own %q, title %q, description %q, hints %q, read only %t, repeatable %t, task %t, always %t, model %t, app %t, page %q", d.Own, d.Title, d.Description, shorten(d.toolDocument.Hints), d.ReadOnly(), d.Repeatable(), d.Task, d.Always, d.Apps.model, d.Apps.app, shorten(d.Apps.page))
				outputs = append(outputs, line, fmt.Sprintf("input %s, output %s, again %t", d.Input(), first, first == string(again.OutputSchema())), fmt.Sprintf("needs %v", d.Needs.list()))
				if d.Needs != nil && d.Needs.err != nil {
					outputs = append(outputs, d.Needs.err)
				}
				outputs = append(outputs, fmt.Sprintf("canonical %.8s, trusted %.8s, document of a tool that only reads %t", d.Canonical(), d.Trusted.Hash(), d.Document().ReadOnly), again.Annotations())
			}
			if err != nil {
				outputs = append(outputs, err)
			}
			table.row(shorten(raw), outputs...)
		}
		for _, limit := range []int{11, 12} {
			_, err := parseDefinition("s", json.RawMessage(`{"name":"a"}`), limit)
			table.row(fmt.Sprint("12 bytes of ", limit), err)
		}
	})
}

// shorten cuts long repetitions.
func shorten(s string) string {
	if len(s) > 400 {
		return fmt.Sprintf("%s…(%d bytes)", s[:60], len(s))
	}
	return s
}

// The texts of errors.
func TestErrorsTable(t *testing.T) {
	compareTable(t, "errors", "Errors as a host reads them, and what they wrap.", func(table *factTable) {
		known := []error{ErrUnknownTool, ErrUnknownResource, ErrNotPermitted, ErrBadArguments, ErrQuarantined, ErrChanged, ErrServerDown, ErrAuthorizationRequired, ErrClosed, ErrDuplicate, context.DeadlineExceeded}
		at := table.begun.Add(time.Hour)
		for _, err := range []error{
			&AuthorizationError{Server: "a", URL: "https://a"}, &AuthorizationError{Server: "a", URL: "https://a", Scopes: []string{"x", "y"}},
			tokenError{&AuthorizationError{Server: "a", URL: "https://a"}, cause.ErrToken}, tokenError{&AuthorizationError{Server: "a", URL: "https://a", Scopes: []string{"x"}}, cause.ErrToken}, tokenError{&AuthorizationError{Server: "a", URL: "https://a", Scopes: []string{"x"}}, cause.ErrNoLogin},
			&ArgumentsError{Tool: "t", Violations: []Violation{{"/a", "is wrong"}}}, &ArgumentsError{Tool: "t", Violations: []Violation{{"/a", "is wrong"}, {"", "is too"}}, More: 1}, &ArgumentsError{Tool: "t", Violations: []Violation{{Problem: "the arguments are no object"}}},
			&permissionError{name: "t"}, &permissionError{name: "t", writes: true},
			&UnknownToolError{Name: "t"}, &UnknownToolError{Name: "t", Gone: at}, &UnknownToolError{Name: "t", Away: "a"}, &UnknownToolError{Name: "t", Connecting: "a"}, &UnknownToolError{Name: "t", Connecting: "a", Away: "b", Gone: at},
			&UnknownResourceError{Server: "a", ID: "u"}, &UnknownResourceError{ID: "u", Nearest: []string{"v"}}, &UnknownResourceError{ID: "u", Servers: []string{"a", "b"}},
			&CollisionError{Server: "a_b", Wanted: "mcp_a_b", Prefix: "mcp_a_b_1", First: "a-b"},
			&ChangedError{Server: "a", Tool: "t", Kind: "tool", Name: "mcp_a__t", Is: "0123456789abcdef", Added: true, Quarantined: true}, &ChangedError{Server: "a", Tool: "t", Kind: "tool", Name: "mcp_a__t", Was: "1123456789abcdef", Is: "0123456789abcdef", Since: at},
			prefixed(errOfStory, "tool %q: ", "t"), prefixed(nil, "x"),
			upstream.About(ErrServerDown, "tool", "t", "a"),
		} {
			var wraps []string
			for _, of := range known {
				if errors.Is(err, of) {
					wraps = append(wraps, of.Error())
				}
			}
			if errors.As(err, new(*AuthorizationError)) {
				wraps = append(wraps, "an AuthorizationError")
			}
			table.row(fmt.Sprintf("%T", err), err, fmt.Sprintf("wraps %q", wraps))
		}
		var none, some startError
		table.row("a start without failures", none.orNil())
		some.add("a", errOfStory)
		table.row("one failure", some.orNil())
		some.add("b", errOfStory)
		some.add("c", errors.New("exit status 1; its last words: panic: x"))
		some.add("d", errors.New("exit status 2; its last words: panic: x"))
		for i := range 12 {
			some.add(fmt.Sprint("e", i), errors.New("no disk"))
		}
		table.row("many", some.orNil(), some.Unwrap()[:3])
		var states []any
		for _, err := range []error{nil, errOfStory, ErrAuthorizationRequired, &AuthorizationError{}, tokenError{&AuthorizationError{}, cause.ErrToken}, tokenError{&AuthorizationError{}, cause.ErrNoLogin}} {
			if err != nil {
				states = append(states, causeOf(err))
			}
		}
		table.row("causes", states...)
	})
}

// What a session counts of the provider's cache, request by request.
func TestLedgerTable(t *testing.T) {
	compareTable(t, "ledger", "Requests of one session, one after the other, and the sums after each.", func(table *factTable) {
		now := table.begun
		for _, of := range []struct {
			name     string
			requests []provider.Usage
		}{
			{"reads all", []provider.Usage{{Input: 5000, Written: 4000, Output: 10}, {Input: 6000, Cached: 4000, Written: 1500}, {Input: 7000, Cached: 5500}}},
			{"loses within the tolerance", []provider.Usage{{Input: 9000, Written: 8000}, {Input: 9000, Cached: 8000 - lossTolerance}}},
			{"loses one more", []provider.Usage{{Input: 9000, Written: 8000}, {Input: 9000, Cached: 8000 - lossTolerance - 1}}},
			{"asks for less", []provider.Usage{{Input: 9000, Written: 8000}, {Input: 5000, Cached: 0}}},
			{"of several requests", []provider.Usage{{Input: 9000, Written: 8000, Left: 3000}, {Input: 9000, Cached: 3000}, {Input: 9000, Cached: 0, Left: -1}}},
			{"automatic, never reads", []provider.Usage{{Input: 9000, Automatic: true}, {Input: 9000, Automatic: true}, {Input: 9000}}},
			{"automatic, has read", []provider.Usage{{Input: 9000, Automatic: true}, {Input: 9000, Cached: 8000, Automatic: true}, {Input: 9000, Automatic: true}, {Input: 9500, Cached: 9000}}},
			{"impossible", []provider.Usage{{Input: -1, Cached: 5, Written: -3, Output: -1}, {Input: 10, Cached: 20, Written: 20, Output: math.MaxInt}}},
		} {
			l := new(ledger)
			for i, u := range of.requests {
				loss, lost := l.count(u.Bounded(), head{}, now)
				table.row(fmt.Sprintf("%s, request %d: %s", of.name, i+1, table.show(u)), l.sums, fmt.Sprintf("lost %t, left %d, automatic %t", lost, l.left, l.automatic), loss)
			}
		}
		l := new(ledger)
		for i := range 10 {
			l.count(provider.Usage{Input: 90000, Written: 80000 + i}, head{}, now.Add(time.Duration(i)*time.Minute))
		}
		losses, saved := l.figures()
		table.row("ten", losses, saved, l.losses)
		losses, saved = (*ledger)(nil).figures()
		table.row("none", losses, saved, (*ledger)(nil).double())
		copied := l.double()
		copied.losses[0].Tokens++
		l.count(provider.Usage{Input: 90000}, head{}, now)
		table.row("a copy", copied.sums, len(copied.losses))
		for _, of := range [][2]int{{1, 2}, {math.MaxInt, 0}, {math.MaxInt, 1}, {math.MaxInt - 5, 5}, {math.MaxInt - 5, 6}} {
			table.row(fmt.Sprintf("%d plus %d", of[0], of[1]), plus(of[0], of[1]))
		}
	})
}

// Why a cache was lost, by what is known.
func TestLossCauseTable(t *testing.T) {
	compareTable(t, "losscauses", "What has changed since the request before, the provider's reason, and the cause that people are told.", func(table *factTable) {
		for _, miss := range []string{"", "unavailable", "previous_message_not_found", "tools_changed", "system_changed", "messages_changed", "model_changed", "else"} {
			for changed := range 16 {
				l := &ledger{at: table.begun, head: head{listed: true, tools: 1, sections: 1}, compacted: changed&1 != 0}
				h, now, what := l.head, table.begun.Add(cacheLife), []string{}
				if changed&1 != 0 {
					what = append(what, "compact")
				}
				if changed&2 != 0 {
					h.tools = 2
					what = append(what, "tools")
				}
				if changed&4 != 0 {
					h.sections = 2
					what = append(what, "sections")
				}
				if changed&8 != 0 {
					now = now.Add(1)
					what = append(what, "pause")
				}
				cause := l.cause(miss, h, now)
				table.row(fmt.Sprintf("%q %v", miss, what), string(cause), snapshot.Loss{Tokens: 1000, Cause: cause, Miss: miss}.Why())
			}
		}
		for _, compacted := range []bool{false, true} {
			l := &ledger{head: head{listed: compacted}}
			l.noticeCompact()
			table.row(fmt.Sprint("Compact of a list that was shown: ", compacted), l.compacted)
		}
		(*ledger)(nil).noticeCompact()
	})
}

// Items of a list that are taken back, and places in a host's conversation.
func TestTranscriptTable(t *testing.T) {
	compareTable(t, "transcript", "What of a list is left, what is taken back, and where a conversation is when messages are taken back.", func(table *factTable) {
		tool := map[rune]*BridgeTool{}
		for _, c := range "abc" {
			tool[c] = &BridgeTool{name: string(c), def: new(definition)}
		}
		// a is a tool, A takes it back, m is one of ours, l is a line of the tool a.
		list := func(text string) (items []listItem) {
			for _, c := range text {
				switch {
				case c == 'm':
					items = append(items, listItem{slot: asMeta})
				case c == 'l':
					items = append(items, listItem{slot: notListed, section: summaryLines, tool: tool['a']})
				case c < 'a':
					items = append(items, listItem{slot: asRemoved, tool: tool[c+'a'-'A']})
				default:
					items = append(items, listItem{slot: asTool, tool: tool[c]})
				}
			}
			return items
		}
		letters := func(items []listItem) (text string) {
			for _, e := range items {
				switch {
				case e.slot == asMeta:
					text += "m"
				case e.slot == notListed:
					text += "l"
				case e.slot == asRemoved:
					text += strings.ToUpper(e.tool.name)
				default:
					text += e.tool.name
				}
			}
			return text
		}
		removes, err := request.FormOf(provider.Anthropic)
		require.NoError(table, err)
		keeps, err := request.FormOf(provider.OpenAIChat)
		require.NoError(table, err)
		table.row("who can take tools back", removes.Removes(), keeps.Removes())
		for _, text := range []string{"", "a", "A", "aA", "abA", "aAa", "aAaA", "abAB", "AaBb", "aAm", "alA", "lAl", "mam", "Aa", "bAa"} {
			table.row(fmt.Sprintf("%q", text), fmt.Sprintf("left %q", letters(remaining(list(text)))), fmt.Sprintf("taken back %q, by who can't %q", takenBack(list(text), removes), takenBack(list(text), keeps)))
			for told := range len(text) + 2 {
				s := &Session{tenant: &tenant{below: &tenant{}}, shown: list(text), transcript: &transcript{told: int32(told)}}
				s.forgetUntold()
				if got := letters(s.shown); got != text {
					table.row(fmt.Sprintf("  %d are told", told), got, fmt.Sprintf("known by name %d", len(s.knownNames)))
				}
			}
		}
		for at := range 7 {
			s := &Session{transcript: &transcript{base: 2, told: 9, inserts: []insert{{4, 1}, {6, 3}, {9, 5}}}}
			s.TakeBack(at * 2)
			table.row(fmt.Sprint("TakeBack to ", at*2), fmt.Sprintf("told %d, inserts %v", s.transcript.told, s.transcript.inserts))
			turns := transcript{base: 2, told: 9, inserts: []insert{{4, 1}, {6, 3}, {9, 5}}}
			turns.goBack(at)
			table.row(fmt.Sprint("messages ", at), fmt.Sprintf("told %d, inserts %v", turns.told, turns.inserts))
		}
		for _, place := range []int{-1, math.MinInt, math.MaxInt} {
			s := &Session{transcript: &transcript{base: 2, told: 9}}
			s.TakeBack(place)
			table.row(fmt.Sprint("TakeBack to ", place), s.transcript.told)
		}
		none := new(Session)
		none.TakeBack(1)
		table.row("TakeBack without a Turn", none.transcript == nil, none.transcriptCopy().begun)
		for _, of := range []transcript{{}, {begun: true}, {begun: true, adds: true}, {adds: true}, {begun: true, adds: true, form: removes}, {begun: true, form: removes}, {adds: true, form: removes}, {begun: true, adds: true, form: keeps}} {
			line := ""
			for _, d := range []Disclosure{Automatic, ByActivation, ByBridge, ByProvider} {
				line += fmt.Sprintf("%s %t, ", d, of.fixed(d))
			}
			table.row(fmt.Sprintf("begun %t, adds %t, a form %t", of.begun, of.adds, of.form != nil), "fixed: "+line+fmt.Sprintf("removes %t", of.removes()))
		}
	})
}

// Where a saved conversation goes on.
func TestRestoredTranscriptTable(t *testing.T) {
	compareTable(t, "restoredtranscript", "Places of a saved conversation, in a list of which items are missing here: the length by that of the saved one is [0 1 1 2 3].", func(table *factTable) {
		here := []int{0, 1, 1, 2, 3}
		for _, told := range []saved.Told{
			{}, {Begun: 2, Items: 4}, {Begun: 4, Items: 4}, {Begun: 5, Items: 5}, {Begun: 6}, {Begun: -1, Items: -1}, {Begun: 3, Items: 1}, {Begun: 1, Items: 99},
			{Begun: 1, Items: 4, Inserts: []saved.Insert{{Items: 2, At: 1}, {Items: 4, At: 3}}}, {Begun: 3, Items: 4, Inserts: []saved.Insert{{Items: 1, At: 1}}}, {Begun: 1, Items: 4, Inserts: []saved.Insert{{Items: 4, At: 5}, {Items: 3, At: 2}}}, {Begun: 0, Items: 4, Inserts: []saved.Insert{{Items: -5, At: -5}, {Items: 99, At: math.MaxInt}}},
		} {
			for _, begun := range []bool{true, false} {
				turns := transcript{begun: begun}
				ok := turns.restore(&told, here)
				table.row(fmt.Sprintf("begun %t: %s", begun, table.show(told)), fmt.Sprintf("ok %t, begun %t, base %d, told %d, inserts %v", ok, turns.begun, turns.base, turns.told, turns.inserts))
			}
		}
	})
}

// What is remembered of tools that have left.
func TestRemovedTable(t *testing.T) {
	compareTable(t, "removed", "Tools that leave and come back, and how many of each server are remembered.", func(table *factTable) {
		gone := func(server string, from, to int) (list []*removedTool) {
			for i := from; i < to; i++ {
				list = append(list, &removedTool{name: fmt.Sprintf("mcp_%s__%d", server, i), subject: rules.Subject{Server: server}})
			}
			return list
		}
		tell := func(what string, l removedTools) {
			var lines []any
			for _, server := range sortedNames(l.byServer) {
				of := l.byServer[server]
				lines = append(lines, fmt.Sprintf("%s: %d, %s to %s, numbers %d to %d", server, len(of), of[0].name, of[len(of)-1].name, of[0].number, of[len(of)-1].number))
			}
			if len(lines) > 6 {
				lines = append(lines[:3:3], fmt.Sprintf("%d servers", len(lines)))
			}
			table.row(what, append(lines, fmt.Sprintf("the last number is %d, %d in all", l.last, l.count()))...)
		}
		var none removedTools
		tell("nothing", none.with(nil, nil))
		tell("nothing, and one comes", none.with(nil, []string{"x"}))
		a := none.with(gone("a", 0, 3), nil)
		tell("three of a", a)
		tell("nothing more", a.with(nil, nil))
		tell("one comes back", a.with(nil, []string{"mcp_a__1", "mcp_b__1"}))
		tell("all come back", a.with(nil, []string{"mcp_a__0", "mcp_a__1", "mcp_a__2"}))
		tell("one of b leaves, one of a comes back", a.with(gone("b", 0, 1), []string{"mcp_a__0"}))
		tell("a is as it was", a)
		for _, n := range []int{999, 1000, 1001} {
			tell(fmt.Sprint(n, " of a"), none.with(gone("a", 0, n), nil))
		}
		all := none
		for i := range 20 {
			all = all.with(gone(fmt.Sprintf("s%02d", i), 0, 1000), nil)
		}
		tell("1,000 of each of 20 servers", all)
		tell("and one of another", all.with(gone("z", 0, 1), nil))
		tell("and 900 of another", all.with(gone("z", 0, 900), nil))
		tell("and 1,000 of another", all.with(gone("z", 0, 1000), nil))
		var each []*removedTool
		for i := range maxRemovedTools + 2 {
			each = append(each, gone(fmt.Sprintf("e%05d", i), 0, 1)...)
		}
		tell("one of each of 20,000 servers", none.with(each[:maxRemovedTools], nil))
		tell("one of each of 20,002 servers", none.with(each, nil))
		found := a.named("mcp_a__1")
		table.row("named", found.name, found.number, a.named("mcp_a__9") == nil, none.named("x") == nil)
	})
}

// What a user's session knows by name alone, up to the limit.
func TestKnownNamesTable(t *testing.T) {
	compareTable(t, "knownnames", "Names that a session of a user remembers, oldest first.", func(table *factTable) {
		name := func(of string, server string) knownName {
			return knownName{rules.Subject{Name: of, Server: server}, nil}
		}
		tell := func(what string, s *Session) {
			var names []string
			for _, n := range s.knownNames {
				names = append(names, n.Name+"@"+n.Server)
			}
			if len(names) > 6 {
				names = append(names[:2:2], fmt.Sprint("… ", names[len(names)-1], ", ", len(names), " in all"))
			}
			table.row(what, names)
		}
		s := &Session{tenant: &tenant{below: &tenant{}}}
		s.remember(nil)
		tell("nothing", s)
		s.remember([]knownName{name("a", "1"), name("b", "1"), name("a", "2")})
		tell("a, b, and a again", s)
		s.remember([]knownName{name("c", "1"), name("b", "2")})
		tell("c, and b again", s)
		s.remember(nil)
		tell("nothing more", s)
		before := s.knownNames
		s.remember([]knownName{name("d", "1")})
		table.row("the list before", len(before))
		for _, n := range []int{maxNames - 4, maxNames - 3, maxNames, maxNames + 1} {
			s := &Session{tenant: &tenant{below: &tenant{}}, knownNames: before}
			var many []knownName
			for i := range n {
				many = append(many, name(fmt.Sprint("n", i), "1"))
			}
			s.remember(many)
			tell(fmt.Sprint("and ", n, " more"), s)
		}
		system := &Session{tenant: new(tenant)}
		system.remember([]knownName{name("a", "1")})
		tell("in the system", system)
		for _, of := range []map[string]*owner{nil, {}, {"a": {"ann"}}, {"a": {"bea"}}, {"a": {""}}, {"a": {"ann"}, "b": {""}}, {"b": {""}, "a": {"ann"}}} {
			key := carryOver{nameOwners: of}.key()
			table.row(fmt.Sprint("key of ", table.show(len(of)), " ", sortedNames(of)), fmt.Sprintf("%x", key[:4]))
		}
	})
}

// How a store that is called does.
func TestStoreMeterTable(t *testing.T) {
	compareTable(t, "storemeter", "Calls of a store one after the other, and its figures after each.", func(table *factTable) {
		var told []any
		m := NewManager(nil)
		defer m.Close()
		meter := m.meter("Cache")
		table.row("one meter for a name", m.meter("Cache") == meter, m.meter("Other") == meter)
		meter.emit = func(e Event) {
			e.Took = min(e.Took, 1) // how long it was away depends on the clock
			told = append(told, e)
		}
		for _, call := range []struct {
			took time.Duration
			err  error
		}{
			{time.Second, nil}, {3 * time.Second, store.ErrNotFound}, {time.Second, store.ErrUnavailable}, {time.Second, fmt.Errorf("again: %w", store.ErrUnavailable)}, {time.Second, store.ErrConflict},
			{time.Second, nil}, {time.Second, nil}, {time.Second, store.ErrConflict}, {time.Second, errOfStory}, {time.Second, context.Canceled}, {time.Second, nil}, {time.Second, store.ErrUnavailable}, {time.Second, store.ErrNotFound},
		} {
			told = nil
			meter.called(call.took, call.err)
			f := meter.figures
			away := !f.Away.IsZero()
			f.Away = time.Time{}
			table.row(fmt.Sprintf("%v, %v", call.took, call.err), append([]any{f, fmt.Sprint("away ", away), meter.err}, told...)...)
		}
		told = nil
		meter.lost()
		table.row("a lease is lost", append([]any{meter.figures.Conflicts}, told...)...)
		of, leases := m.ObserveSessions(failingSessions{}), m.ObserveLeases(failingSessions{})
		state, revision, err := of.Get(context.Background(), "id")
		table.row("Get", string(state), revision, err)
		revision, err = of.Put(context.Background(), "id", nil, 7)
		table.row("Put", revision, err)
		table.row("Delete", of.Delete(context.Background(), "id", 7))
		for id, err := range of.List(context.Background()) {
			table.row("List", id, err)
		}
		held, release, err := leases.Lease(context.Background(), "id")
		table.row("Lease", held != nil, release != nil, err)
		look := look(table, m, 0)
		for _, st := range look.Stores() {
			st.Latency, st.Longest = min(st.Latency, 15*time.Second), min(st.Longest, 3*time.Second)
			if st.Name != "Cache" { // which was told how long its calls took
				st.Latency, st.Longest = 0, 0
			}
			st.Away = time.Time{}
			table.row("people are shown", st)
		}
	})
}

// failingSessions are a store that answers, and fails all the same.
type failingSessions struct{}

func (failingSessions) Get(context.Context, string) ([]byte, uint64, error) {
	return []byte("state"), 5, errOfStory
}
func (failingSessions) Put(context.Context, string, []byte, uint64) (uint64, error) {
	return 8, store.ErrConflict
}
func (failingSessions) Delete(context.Context, string, uint64) error { return store.ErrUnavailable }
func (failingSessions) List(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("id", errOfStory) }
}
func (failingSessions) Lease(ctx context.Context, _ string) (context.Context, func(), error) {
	return ctx, func() {}, errOfStory
}

// The first, the fourth, the sixteenth attempt and so on are powers of four.
func TestPowersOfFour(t *testing.T) {
	compareTable(t, "attempts", "Which of the attempts in vain are logged as warnings.", func(table *factTable) {
		var logged []int
		for n := 1; n <= 1024; n++ {
			if isPowerOfFour(n) {
				logged = append(logged, n)
			}
		}
		table.row("1 to 1,024", logged)
	})
}

// Calls that are rejected are counted while they are the same.
func TestRefusalsAreCounted(t *testing.T) {
	compareTable(t, "refusalcounts", "Rejected calls one after the other, and how often each was rejected in a row before.", func(table *factTable) {
		s := new(Session)
		for _, call := range [][2]string{{"a", "{}"}, {"a", "{}"}, {"a", "{}"}, {"b", "{}"}, {"a", "{}"}, {"a", `{"x":1}`}, {"a{", "}"}, {"a", "{}"}, {"a", "{}"}} {
			table.row(call[0]+" "+call[1], s.countRefusal(call[0], json.RawMessage(call[1])), *s.refused)
		}
	})
}

// A session's use of tools.
func TestLastUseTable(t *testing.T) {
	compareTable(t, "lastuse", "Tools that are activated and used in turns, in the order of activation.", func(table *factTable) {
		s := &Session{seen: weak.Pointer[partition]{}}
		tool := func(name string) *BridgeTool { return &BridgeTool{name: name, def: new(definition)} }
		a, b, c := tool("a"), tool("b"), tool("c")
		tell := func(what string) {
			var lines []any
			for _, name := range sortedNames(s.lastUsed) {
				lines = append(lines, fmt.Sprintf("%s: turn %d, activation %d", name, s.lastUsed[name].turn, s.lastUsed[name].activation))
			}
			table.row(what, append(lines, namesOf(s.inOrder([]*BridgeTool{b, a}, []*BridgeTool{c})), s.activations)...)
		}
		s.forgetUnused()
		tell("nothing")
		s.use(a, true)
		s.userTurn = 3
		s.use(b, true)
		tell("a, then b in turn 3")
		s.userTurn = 4
		s.use(a, false)
		s.use(c, true)
		tell("a again, and c")
		s.active, s.unavailable = []*BridgeTool{a}, []*BridgeTool{c}
		s.forgetUnused()
		tell("b is no longer active")
		s.active, s.unavailable = nil, nil
		s.forgetUnused()
		tell("nor the others")
	})
}

// Names by which a model may ask for something too long.
func TestSessionOptionsTable(t *testing.T) {
	compareTable(t, "sessionoptions", "Options of sessions, and what they become or how NewSession panics.", func(table *factTable) {
		m := NewManager(&Options{Access: Access{Deny: []string{SearchToolName}}})
		defer m.Close()
		tell := func(what string, o *SessionOptions) *Session {
			var s *Session
			with := panics(func() { s = m.NewSession(o) })
			if s == nil {
				table.row(what, with)
				return nil
			}
			table.row(what, fmt.Sprintf("label %q, intent %q, disclosure %s, client %t, callers %q, rights %d, the usual %t", shorten(s.asked.label), s.intentNow(), s.Disclosure(), s.asked.client, s.asked.callers, len(s.rights), s.asked == &noWishes))
			return s
		}
		tell("none", nil)
		tell("zero", &SessionOptions{})
		tell("a label", &SessionOptions{Label: "two\nlines"})
		tell("200 characters", &SessionOptions{Label: strings.Repeat("x", 201)})
		tell("a client", &SessionOptions{Client: true})
		tell("an intent", &SessionOptions{Intent: "browse"})
		tell("Disclosure", &SessionOptions{Disclosure: ByBridge})
		tell("no Disclosure", &SessionOptions{Disclosure: 99})
		tell("no Disclosure", &SessionOptions{Disclosure: -1})
		names := strings.Split("a,b,c,d,e,f,g,h,i", ",")
		tell("8 callers", &SessionOptions{AllowedCallers: names[:8]})
		tell("9 callers", &SessionOptions{AllowedCallers: names})
		tell("no callers", &SessionOptions{AllowedCallers: []string{}})
		tell("a bad caller", &SessionOptions{AllowedCallers: []string{"a b"}})
		callers := append(make([]string, 0, 4), "direct")
		s := tell("access", &SessionOptions{Access: Access{Deny: []string{"x"}}, Skills: Access{Deny: []string{"y"}}, Label: "parent", Intent: "read", AllowedCallers: callers})
		callers[0] = "changed"
		table.row("its callers", s.asked.callers)
		child := func(what string, o *SessionOptions) {
			c := s.NewChild(o)
			table.row(what, fmt.Sprintf("label %q, intent %q, callers %q, rights %d", c.asked.label, c.intentNow(), c.asked.callers, len(c.rights)))
		}
		child("a child", nil)
		child("a child of another label", &SessionOptions{Label: "child", Intent: "write", Access: Access{Deny: []string{"z"}}, Skills: Access{Allow: []string{"*"}}})
		for _, intent := range []string{"", "browse", strings.Repeat("i", 999) + "é"} {
			s.SetIntent(intent)
			table.row("SetIntent of "+fmt.Sprint(len(intent), " bytes"), len(s.intentNow()))
		}
		table.row("Problems", s.Problems(), m.NewSession(nil).Problems())
	})
}
