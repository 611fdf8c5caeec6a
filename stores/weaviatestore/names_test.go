package weaviatestore

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// hostileScopes are names that have caused trouble somewhere.
func hostileScopes() []string {
	list := []string{
		"", "system", "System", "SYSTEM", "system ", "u", "U", "ü", "u\x00", "a/b", `a\b`, "..", ".", "a.b", "*", "?", "\xff", "\xfe",
		"4f1c2d3e-0000-4000-8000-000000000000", "4F1C2D3E-0000-4000-8000-000000000000", "_", "-", "tenants",
		"x\n", "人", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 1000), "K", "\u212a", "con", "nul",
	}
	for _, s := range slices.Clone(list) { // names that look like those of others
		list = append(list, TenantName(s), hash(s), hash(s)[:63])
	}
	return list
}

// takenTenant matches the names that Weaviate accepts for a tenant, without
// capitals.
var takenTenant = regexp.MustCompile(`\A[a-z0-9_-]{1,64}\z`)

// No two scopes share a tenant on any file system, and Weaviate accepts each
// name.
func TestTenantNames(t *testing.T) {
	scopes := hostileScopes()
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "A", "_", "-", ".", "system", "/", "\x00", "人", "0", "\xff", strings.Repeat("b", 62)}
	for range 20_000 {
		s := ""
		for range random.IntN(6) {
			s += pieces[random.IntN(len(pieces))]
		}
		scopes = append(scopes, s)
	}
	owners := make(map[string]string)
	for _, scope := range scopes {
		name := TenantName(scope)
		if !takenTenant.MatchString(name) {
			t.Fatalf("scope %q: tenant %q", scope, name)
		}
		if owner, ok := owners[name]; ok && owner != scope {
			t.Fatalf("scopes %q and %q share tenant %q", owner, scope, name)
		}
		owners[name] = scope
	}
	assert.Equal(t, "system", TenantName("system"))
	assert.Equal(t, "4f1c2d3e-0000-4000-8000-000000000000", TenantName("4f1c2d3e-0000-4000-8000-000000000000"))
	assert.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", TenantName(""))
	assert.Equal(t, "b3f8bd2d-9f32-575f-9c68-4a0638d14552", objectID("mcp_s__walk"), "objects that are stored would be lost")
}

func FuzzTenantName(f *testing.F) {
	for _, s := range hostileScopes() {
		f.Add(s, "u")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		assert.Equal(t, a == b, TenantName(a) == TenantName(b), "%q %q", a, b)
		assert.Regexp(t, takenTenant, TenantName(a))
		assert.Equal(t, a == b, objectID(a) == objectID(b))
	})
}
