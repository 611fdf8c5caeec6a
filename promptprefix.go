package mcphybrid

// What sessions that begin alike are shown first, made once for all of them.

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/saved"
)

// promptPrefixes are the first lists that models are shown.
type promptPrefixes struct {
	all  sync.Map     // *promptPrefix by promptPrefixKey
	made atomic.Int32 // number of lists made
}

// A promptPrefixKey tells the first lists of a partition and a disclosure apart.
type promptPrefixKey struct {
	skills                  uint64 // their version
	client, noBridge, loads bool
	skillRights             string
}

// A promptPrefix is a first list, which sessions share, and its text.
type promptPrefix struct {
	items []listItem
	key   saved.Key
	own   bool                           // of one session, which was restored where others begin with another
	texts [3]atomic.Pointer[sectionText] // all sections, those on search, the others; nil until written
}

// promptPrefix returns the first list of a session. All sessions of a partition that are asked
// for in the same way and may use the same skills share it.
func (v *view) promptPrefix() *promptPrefix {
	o := &v.promptPrefixes[v.disclosure]
	key := promptPrefixKey{v.skills.version, v.client, v.noBridge, v.loads, v.skillRights.Key()}
	if made, ok := o.all.Load(key); ok {
		return made.(*promptPrefix)
	}
	without := *v
	without.active = nil
	first := &promptPrefix{items: slices.Clip(without.appendNew(nil))}
	if o.made.Add(1) > maxPromptPrefixes { // any one makes room
		o.all.Range(func(other, _ any) bool { o.all.Delete(other); return false })
	}
	o.all.Store(key, first)
	return first
}
