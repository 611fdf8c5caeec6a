package mcphybrid

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server with UnlistedResources is asked for what nobody lists, within the access lists and
// beside what is held back. Others are not.
func TestUnlistedResources(t *testing.T) {
	t.Parallel()
	open := ServerConfig{Name: "archive", InProcess: newArchive(), UnlistedResources: true}
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{open, {Name: "second", InProcess: newArchive()}}})
	s := m.NewSession(nil)
	assert.Equal(t, "text of mem://nowhere", readBy(t, s, "archive", "mem://nowhere"))
	assert.Equal(t, "text of mem://nowhere", readBy(t, s, "", "mem://nowhere"), "only one server may have it")
	_, err := s.ReadResource(t.Context(), "second", "mem://nowhere")
	assert.ErrorIs(t, err, ErrUnknownResource)
	_, err = s.ReadResource(t.Context(), "", "mem://letters/1")
	assert.ErrorContains(t, err, "several servers", "what is listed comes first, and two list it")
	r, err := s.Call(t.Context(), ResourceReadToolName, `{"server":"archive","uri":"mem://nowhere"}`)
	require.NoError(t, err)
	assert.Equal(t, "text of mem://nowhere", resultText(t, r))
	_, err = s.ReadResource(t.Context(), "archive", "other://x")
	assert.NotErrorIs(t, err, ErrUnknownResource)
	assert.ErrorContains(t, err, "not found", "the server says so")
	for _, uri := range []string{"skill://x/SKILL.md", "SKILL://x/SKILL.md"} {
		_, err = s.ReadResource(t.Context(), "archive", uri)
		assert.ErrorIs(t, err, ErrUnknownResource, "nobody has accepted it, and NoSkills may forbid it")
	}

	// Access lists hold for every spelling, and nobody learns of a server that may not be asked.
	narrow := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"archive/mem://secret*", "first letter"}}})
	for _, uri := range []string{"mem://secret", "mem://%73ecret", "mem://x/../secret"} {
		_, err = narrow.ReadResource(t.Context(), "archive", uri)
		assert.ErrorIs(t, err, ErrUnknownResource, uri)
	}
	_, err = narrow.ReadResource(t.Context(), "archive", "mem://letters/%31")
	assert.ErrorIs(t, err, ErrNotPermitted, "a spelling of what is listed and denied by its name")
	none := m.NewSession(&SessionOptions{Access: Access{Allow: []string{"second/*"}}})
	_, err = none.ReadResource(t.Context(), "archive", "mem://nowhere")
	assert.ErrorIs(t, err, ErrUnknownResource)

	// Two that may have it must be told apart.
	open.Name = "third"
	require.NoError(t, m.AddServer(t.Context(), open))
	var several *UnknownResourceError
	_, err = s.ReadResource(t.Context(), "", "mem://nowhere")
	require.ErrorAs(t, err, &several)
	assert.Equal(t, []string{"archive", "third"}, several.Servers)
	require.True(t, m.RemoveServer("third"))
	assert.Equal(t, "text of mem://nowhere", readBy(t, s, "", "mem://nowhere"))
}

// A template that is denied by its name can't be gone round by a spelling to which it does not
// expand.
func TestUnlistedResourcesOfADeniedTemplate(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "archive", InProcess: newArchive(), UnlistedResources: true}}})
	denied := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"page"}}})
	for _, uri := range []string{"mem://pages/7", "mem://pages//7", "mem://pages/x/../7", "mem://%70ages/7", "mem:pages/7", "mem://PAGES/7", "mem://pages/7?x"} {
		_, err := denied.ReadResource(t.Context(), "archive", uri)
		assert.ErrorIs(t, err, ErrNotPermitted, uri)
	}
	assert.Equal(t, "text of mem://nowhere", readBy(t, denied, "archive", "mem://nowhere"))
	assert.Equal(t, "text of mem://pages//7", readBy(t, m.NewSession(nil), "archive", "mem://pages//7"))
}

// A server that lists nothing may have resources all the same: they can be read and
// subscribed to, and the model has the tool that reads.
func TestUnlistedResourcesOfAServerWithoutAny(t *testing.T) {
	t.Parallel()
	b := newNoticeboard()
	b.SetResources()
	b.SetResourceTemplates()
	cfg := b.config("board")
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{cfg}})
	assert.NotContains(t, namesOf(m.Default().Tools()), ResourceReadToolName)
	cfg.UnlistedResources = true
	m, _ = newTestManager(t, &Options{Servers: []ServerConfig{cfg}})
	s := m.NewSession(nil)
	require.Empty(t, s.Resources())
	assert.Contains(t, namesOf(s.Tools()), ResourceReadToolName)
	denied := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"board/*"}}})
	assert.NotContains(t, namesOf(denied.Tools()), ResourceReadToolName)
	told := make(chan string, 1)
	_, err := s.SubscribeResource(t.Context(), "", "mem://later", func(uri string) { told <- uri })
	require.NoError(t, err)
	assert.Equal(t, 1, b.count("mem://later"))
	b.update("mem://later")
	assert.Equal(t, "mem://later", <-told)
}

// What a user may ask of the own servers, nobody else may.
func TestUnlistedResourcesOfAUser(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "plain", InProcess: newArchive()}}})
	open := ServerConfig{Name: "archive", InProcess: newArchive(), UnlistedResources: true}
	ann, err := m.NewUser("ann", &UserOptions{Servers: []ServerConfig{open}})
	require.NoError(t, err)
	require.NoError(t, ann.Start(t.Context()))
	bob, err := m.NewUser("bob", nil)
	require.NoError(t, err)
	assert.Equal(t, "text of mem://nowhere", readBy(t, ann.NewSession(nil), "archive", "mem://nowhere"))
	for _, s := range []*Session{bob.NewSession(nil), m.NewSession(nil)} {
		_, err = s.ReadResource(t.Context(), "archive", "mem://nowhere")
		assert.ErrorIs(t, err, ErrUnknownResource)
	}
}
