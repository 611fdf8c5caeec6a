package files

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The skill for agents that work on hosts of this library can be loaded by it, and names
// only what the public surface has.
func TestOwnSkill(t *testing.T) {
	t.Parallel()
	skills, err := LoadSkills("../skills")
	require.NoError(t, err)
	require.Len(t, skills, 1)
	require.NoError(t, skills[0].Validate())
	assert.Equal(t, "mcphybrid", skills[0].Name)
	body, err := skills[0].Load(t.Context())
	require.NoError(t, err)
	api, err := os.ReadFile("../api.txt")
	require.NoError(t, err)
	named := regexp.MustCompile(`\b(mcphybrid|mgr|sess|turn|provider|cfg)\.([A-Z]\w+)`).FindAllStringSubmatch(body, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		assert.Regexp(t, `\b`+m[2]+`\b`, string(api), "%s", m[0])
	}
	assert.NotContains(t, strings.ToLower(body), "http") // it needs no page
}
