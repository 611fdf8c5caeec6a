package billing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made makes a request of kinds, names and tokens: "t a 100", "s b 20", "m c 5". Blocks of the
// same text are the same.
func made(blocks ...string) (q Request) {
	for _, text := range blocks {
		var kind, name string
		b := Block{}
		if _, err := fmt.Sscan(text, &kind, &name, &b.Tokens); err != nil {
			panic(err)
		}
		b.Kind = map[string]Kind{"t": Tool, "s": System, "m": Message}[kind]
		for _, c := range text {
			b.ID = b.ID*131 + int(c)
		}
		q = append(q, b)
	}
	return q
}

// Three requests by each rule: the first, one with a message more, and one with a tool more,
// which comes before all messages.
func TestRules(t *testing.T) {
	t.Parallel()
	first := made("t a 4000", "s b 500", "m c 500")
	appended := made("t a 4000", "s b 500", "m c 500", "m d 200")
	grown := made("t a 4000", "t e 300", "s b 500", "m c 500", "m d 200", "m f 100")
	for name, want := range map[string][3]float64{
		"Anthropic, 3 breakpoints":       {6250, 750, 2400}, // 0.1·4000 + 1.25·1600
		"Anthropic, automatic":           {6250, 750, 7000},
		"Anthropic 5.5, 3 breakpoints":   {6250, 500, 2200},
		"Anthropic 5.5, automatic":       {6250, 500, 7000},
		"Anthropic Fable 5.1, automatic": {6250, 375, 7000},
		"OpenAI GPT-5.6+":                {6250, 750, 7000},
		"OpenAI GPT-5–5.5":               {5000, 707.2, 2028.8}, // 4992 and 3968 are read
		"OpenAI GPT-4.1":                 {5000, 1456, 2624},
		"OpenAI GPT-4o":                  {5000, 2704, 3616},
		"Gemini 3":                       {5000, 700, 5600}, // 4000 are too few
		"Gemini 2.5, 0.25":               {5000, 1450, 2600},
		"no cache":                       {5000, 5200, 5600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := named(t, name)
			a := rule.Open()
			for i, q := range []Request{first, appended, grown} {
				got := a.Bill(q)
				assert.InDelta(t, want[i], got.Price, 1e-9, "request %d: %+v", i, got)
				assert.Equal(t, i == 2 && name != "no cache", got.Lost, "request %d: %+v", i, got)
				assert.Equal(t, i == 2, got.Changed, "request %d", i)
				assert.Equal(t, i == 2 && rule.PrefixCheck, got.Refused, "request %d", i)
			}
		})
	}
	assert.Len(t, Rules(), 12)
}

func named(t *testing.T, name string) Rule {
	for _, r := range Rules() {
		if r.Name == name {
			return r
		}
	}
	require.Fail(t, "there is no rule", name)
	return Rule{}
}

func TestAppendedIsRead(t *testing.T) {
	t.Parallel()
	a := Anthropic55.Open()
	blocks := []string{"t a 2000", "s b 500"}
	for i := range 30 {
		blocks = append(blocks, fmt.Sprintf("m x%d 100", i), fmt.Sprintf("m y%d 100", i))
		bill := a.Bill(made(blocks...))
		if i > 0 {
			assert.Equal(t, Bill{Tokens: 2700 + 200*i, Cached: 2500 + 200*i, Price: .05*float64(2500+200*i) + 250}, bill)
		}
	}
}

func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	a := Fable51Automatic.Open()
	a.Bill(made("t a 1000", "s b 10", "m c 10"))
	assert.True(t, a.Bill(made("t a 1000", "s b 11", "m c 10", "m d 10")).Refused)
	bill := a.Bill(made("t a 1000", "s b 11", "m c 10", "m d 10", "m e 10"))
	assert.True(t, bill.Refused)
	assert.False(t, bill.Changed)
	assert.False(t, bill.Lost)

	// What is taken away at the end is a change too.
	a = Fable51Automatic.Open()
	a.Bill(made("t a 1000", "m c 10", "m d 10"))
	assert.True(t, a.Bill(made("t a 1000", "m c 10")).Changed)
}

// What is too short is not cached, and its price is not that of a write.
func TestLeast(t *testing.T) {
	t.Parallel()
	a := AnthropicAutomatic.Open()
	assert.Equal(t, Bill{Tokens: 1023, Price: 1023}, a.Bill(made("s a 1023")))
	assert.Equal(t, Bill{Tokens: 1123, Price: 1.25 * 1123}, a.Bill(made("s a 1023", "m b 100")))
	assert.Equal(t, Bill{Tokens: 1223, Cached: 1123, Price: .1*1123 + 125}, a.Bill(made("s a 1023", "m b 100", "m c 100")))

	a = Fable51Automatic.Open()
	a.Bill(made("s a 512"))
	assert.Equal(t, 512, a.Bill(made("s a 512", "m b 100")).Cached)

	a = Anthropic.Open() // what is behind the tools is too short, the whole is not
	a.Bill(made("t a 1023", "s b 1"))
	bill := a.Bill(made("t a 1023", "s c 1"))
	assert.Zero(t, bill.Cached)
	assert.True(t, bill.Lost)
}

func TestLookback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule  Rule
		added int
		read  int
	}{
		{AnthropicAutomatic, 19, 2000},
		{AnthropicAutomatic, 20, 0},
		{Anthropic, 19, 2000},
		{Anthropic, 20, 1500}, // behind the tools
		{GPT56, 20, 2000},
		{GPT5, 20, 1920}, // 15·128
	} {
		a := tt.rule.Open()
		blocks := []string{"t a 1500", "m b 500"}
		a.Bill(made(blocks...))
		for i := range tt.added {
			blocks = append(blocks, fmt.Sprintf("m c%d 1", i))
		}
		assert.Equal(t, tt.read, a.Bill(made(blocks...)).Cached, "%s, %d blocks", tt.rule.Name, tt.added)
	}
}

// Steps are of what is read, not of what a request has.
func TestSteps(t *testing.T) {
	t.Parallel()
	a := GPT5.Open()
	a.Bill(made("s a 1100"))
	bill := a.Bill(made("s a 1100", "m b 100"))
	assert.Equal(t, 1024, bill.Cached) // 8·128; the next would be 1152
	assert.False(t, bill.Lost)
	assert.Equal(t, 1152, a.Bill(made("s a 1100", "m b 100", "m c 100")).Cached)
}

// Before GPT-5.6 any common beginning is read; since then, only what ends at a breakpoint.
func TestOnlyAtBreakpoints(t *testing.T) {
	t.Parallel()
	first := made("t a 3000", "s b 500", "m c 500")
	other := made("t a 3000", "s b 500", "m d 500")
	for _, tt := range []struct {
		rule Rule
		read int
	}{{GPT5, 3456}, {GPT56, 0}, {Anthropic, 3500}, {AnthropicAutomatic, 0}, {Gemini25, 3500}} {
		a := tt.rule.Open()
		a.Bill(first)
		assert.Equal(t, tt.read, a.Bill(other).Cached, tt.rule.Name)
		// Where the first ended, there was a breakpoint.
		again := a.Bill(append(first[:len(first):len(first)], made("m e 500")...))
		assert.Equal(t, max(4000/max(tt.rule.Step, 1)*max(tt.rule.Step, 1), 0), again.Cached, tt.rule.Name)
	}
}

// The rules say what the providers' documents say.
func TestRulesAsDocumented(t *testing.T) {
	t.Parallel()
	type numbers struct {
		read, write    float64
		least          int
		points         Points
		lookback, step int
		checks         bool
	}
	for name, want := range map[string]numbers{
		"Anthropic, 3 breakpoints":       {.1, 1.25, 1024, AtSections, 20, 0, false},
		"Anthropic, automatic":           {.1, 1.25, 1024, AtEnd, 20, 0, false},
		"Anthropic 5.5, 3 breakpoints":   {.05, 1.25, 512, AtSections, 20, 0, true},
		"Anthropic 5.5, automatic":       {.05, 1.25, 512, AtEnd, 20, 0, true},
		"Anthropic Fable 5.1, automatic": {.025, 1.25, 512, AtEnd, 20, 0, true},
		"OpenAI GPT-5.6+":                {.1, 1.25, 1024, AtEnd, 0, 0, false},
		"OpenAI GPT-5–5.5":               {.1, 1, 1024, Everywhere, 0, 128, false},
		"OpenAI GPT-4.1":                 {.25, 1, 1024, Everywhere, 0, 128, false},
		"OpenAI GPT-4o":                  {.5, 1, 1024, Everywhere, 0, 128, false},
		"Gemini 3":                       {.1, 1, 4096, Everywhere, 0, 0, false},
		"Gemini 2.5, 0.25":               {.25, 1, 2048, Everywhere, 0, 0, false},
	} {
		r := named(t, name)
		assert.Equal(t, want, numbers{r.Read, r.Write, r.Least, r.Points, r.Lookback, r.Step, r.PrefixCheck}, name)
	}
}
