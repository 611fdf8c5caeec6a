package trust

import (
	"context"
	"testing"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// together is a store that changes its document in one step.
type together struct{ *memory }

func (s together) Update(_ context.Context, change func([]byte) ([]byte, error)) error {
	data, err := change(s.data)
	if err == nil {
		s.data = data
	}
	return err
}

// A history that can't be read stays as it is, byte for byte, for a person to mend. What
// was seen meanwhile is stored as soon as it can be.
func TestDamagedHistoryIsKept(t *testing.T) {
	t.Parallel()
	for damaged, want := range map[string]string{
		"not JSON": "invalid character",
		`{"version":1,"servers":{"s":{"a":{"sum":"00","ha`: "unexpected end",
		`{"version":3,"servers":{}}`:                       "the document has version 3, want 1 to 2",
		`{"version":1,"servers":{"s":{"a":{"sum":"00"}}}}`: `tool "a" of server "s" has no hash`,
		`{"version":1,"servers":{"s":{"a":null}}}`:         `tool "a" of server "s" has no hash`,
		"": "unexpected end",
	} {
		for _, shared := range []bool{false, true} {
			kept := &memory{data: []byte(damaged)}
			var doc store.Document = kept
			if shared {
				doc = together{kept}
			}
			m := fresh(Suspect, 10, doc)
			for range 2 { // the failure is no success of a kind
				m.Judge("s", []*Definition{define("a", "1")})
				changed, err := m.Save()
				assert.ErrorContains(t, err, "storing the known tools: ", damaged)
				assert.ErrorContains(t, err, want, damaged)
				assert.ErrorContains(t, m.Stored(), want, damaged)
				assert.False(t, changed)
				require.NotNil(t, kept.data)
				assert.Equal(t, damaged, string(kept.data))
				assert.Error(t, m.Load(), damaged)
			}
			kept.data = nil
			_, err := m.Save()
			require.NoError(t, err)
			assert.Contains(t, string(kept.data), `"a"`)
			assert.NoError(t, m.Stored())
		}
	}
}
