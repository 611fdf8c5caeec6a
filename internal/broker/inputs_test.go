package broker

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A hook learns which question of a result it answers. Equal ones have a name each, and
// what the server asks besides has none.
func TestInputsHaveNames(t *testing.T) {
	var got []string
	b := New(Config{Options: ask.Options{MaxPerCall: 9, MaxAtOnce: 9, MaxBytes: 1000, Timeout: 1e12, Hooks: ask.Hooks{
		Sample: func(ctx context.Context, _ ask.Asker, p mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			in, ok := InputOf(ctx)
			if got = append(got, in.Name); ok {
				assert.Equal(t, 4, in.Round.Questions)
			}
			return nil, ask.ErrDeclined
		},
		Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
			in, _ := InputOf(ctx)
			got = append(got, in.Name)
			return nil, nil
		},
	}}})
	t.Cleanup(b.Close)
	ctx, end := b.Begin(t.Context(), "tool")
	defer end(true)
	question := func(text string) mcp.CreateMessageParams {
		return mcp.CreateMessageParams{MaxTokens: 1, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}}}
	}
	SetInputs(ctx, mcp.InputRequests{
		"one": mcp.NewSamplingInputRequest(question("1")), "two": mcp.NewSamplingInputRequest(question("2")),
		"three": mcp.NewSamplingInputRequest(question("1")), "roots": mcp.NewRootsInputRequest(),
	})
	for _, text := range []string{"2", "1", "1", "1", "4"} {
		_, err := b.CreateMessage(ctx, mcp.CreateMessageRequest{CreateMessageParams: question(text)})
		require.ErrorIs(t, err, ask.ErrDeclined)
	}
	_, err := b.ListRoots(ctx, mcp.ListRootsRequest{})
	require.NoError(t, err)
	assert.Equal(t, []string{"two", "one", "three", "", "", "roots"}, got)
	SetInputs(t.Context(), nil) // of no call
}

// A request declares what the client can do and its caller can answer.
func TestBoth(t *testing.T) {
	url := &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}
	has := mcp.ClientCapabilities{Elicitation: url, Sampling: &mcp.SamplingCapability{}}
	assert.Equal(t, mcp.ClientCapabilities{}, Both(has, mcp.ClientCapabilities{}))
	assert.Equal(t, mcp.ClientCapabilities{}, Both(mcp.ClientCapabilities{}, has))
	assert.Equal(t, has, Both(has, has))
	form := &mcp.ElicitationCapability{Form: &struct{}{}}
	assert.Equal(t, mcp.ClientCapabilities{Elicitation: form}, Both(has, mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}))
	rooted := has
	rooted.Roots = &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{}
	assert.Equal(t, has, Both(rooted, has), "the caller has no roots")
	assert.Equal(t, rooted, Both(rooted, rooted))

	// Tasks are declared for what can be answered, and what the client has is not changed.
	all := New(Config{Options: ask.Options{Hooks: ask.Hooks{Elicit: ask.Decline().Elicit, Sample: ask.Decline().Sample}}})
	defer all.Close()
	for name, test := range map[string]struct {
		can                      mcp.ClientCapabilities
		tasks, elicited, sampled bool
	}{
		"all": {all.Capabilities(), true, true, true}, "none": {mcp.ClientCapabilities{}, false, false, false},
		"forms": {mcp.ClientCapabilities{Elicitation: form}, true, true, false}, "models": {mcp.ClientCapabilities{Sampling: has.Sampling}, true, false, true},
	} {
		got := Both(all.Capabilities(), test.can).Tasks
		if assert.Equal(t, test.tasks, got != nil, name) && got != nil {
			assert.Equal(t, test.elicited, got.Requests.Elicitation != nil, name)
			assert.Equal(t, test.sampled, got.Requests.Sampling != nil, name)
			assert.NotNil(t, got.Cancel, name)
		}
	}
	whole := all.Capabilities()
	Both(whole, mcp.ClientCapabilities{Elicitation: form})
	assert.Equal(t, all.Capabilities(), whole)
	none := mcp.ClientCapabilities{Tasks: &mcp.TasksCapability{}}
	assert.Equal(t, none, Both(none, none), "tasks that are for nothing")
	_, ok := Declared(t.Context())
	assert.False(t, ok)
	can, ok := Declared(Declare(t.Context(), has))
	assert.True(t, ok)
	assert.Equal(t, has, can)
}

// A question of another method is not the one that a result asks, whatever its parameters.
func TestInputsAreOfTheirMethod(t *testing.T) {
	t.Parallel()
	var got []bool
	b := New(Config{Options: ask.Options{MaxPerCall: 9, MaxAtOnce: 9, MaxBytes: 1000, Timeout: 1e12, Hooks: ask.Hooks{
		Elicit: func(ctx context.Context, _ ask.Asker, _ mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			_, ok := InputOf(ctx)
			got = append(got, ok)
			return nil, ask.ErrDeclined
		},
		Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
			_, ok := InputOf(ctx)
			got = append(got, ok)
			return nil, nil
		},
	}}})
	t.Cleanup(b.Close)
	ctx, end := b.Begin(t.Context(), "tool")
	defer end(true)
	page := mcp.ElicitationParams{Mode: mcp.ElicitationModeURL, URL: "https://example.com/", Message: "m"}
	SetInputs(ctx, mcp.InputRequests{"one": mcp.NewElicitationInputRequest(page), "odd": {Method: "other"}})
	_, err := b.ListRoots(ctx, mcp.ListRootsRequest{})
	require.NoError(t, err)
	for range 2 {
		_, err = b.Elicit(ctx, mcp.ElicitationRequest{Params: page})
		require.NoError(t, err)
	}
	assert.Equal(t, []bool{false, true, false}, got)
}
