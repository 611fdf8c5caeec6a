package mcphybrid

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// The members of a tool's _meta by which servers say how it should be offered,
// as published clients understand them:
//
//	{"name": "open_ticket", …, "_meta": {"anthropic/alwaysLoad": true, "anthropic/searchHint": "bug incident"}}
const (
	// AlwaysLoadKey says that the tool should be inline. Five such tools of a
	// server come before other tools, pins aside, within the limits on these.
	AlwaysLoadKey = "anthropic/alwaysLoad"

	// SearchHintKey has further words to find the tool by.
	SearchHintKey = "anthropic/searchHint"
)

// maxSearchHint is how many bytes of a server's hint are indexed.
const maxSearchHint = 500

// parseServerHints returns what is said in a tool's _meta. A hint of the wrong
// type is no hint.
func parseServerHints(meta json.RawMessage) (always bool, search string) {
	if text.IsNull(meta) {
		return false, ""
	}
	var in struct {
		Always json.RawMessage `json:"anthropic/alwaysLoad"`
		Search json.RawMessage `json:"anthropic/searchHint"`
	}
	if json.Unmarshal(meta, &in) != nil {
		return false, ""
	}
	_ = json.Unmarshal(in.Always, &always)
	_ = json.Unmarshal(in.Search, &search)
	return always, strings.ToValidUTF8(search[:min(len(search), maxSearchHint)], "")
}

// NeedsKey is the member of a tool's _meta by which its server says which of
// its tools this one needs, by their own names:
//
//	{"name": "edit_file", …, "_meta": {"mcphybrid/needs": ["read_file"]}}
const NeedsKey = "mcphybrid/needs"

// maxNeeds is how many tools one brings along, and how many its server may
// name: a server must not have half a catalog activated by one of its tools.
const maxNeeds = 32

// parseNeeds returns the names under [NeedsKey] in a tool's _meta.
func parseNeeds(meta json.RawMessage) ([]string, error) {
	if text.IsNull(meta) {
		return nil, nil
	}
	var in struct {
		Needs []string `json:"mcphybrid/needs"`
	}
	if err := json.Unmarshal(meta, &in); err != nil {
		return nil, text.JSONError(meta, err)
	}
	if len(in.Needs) > maxNeeds {
		return nil, fmt.Errorf("%q has %d names, more than the limit of %d", NeedsKey, len(in.Needs), maxNeeds)
	}
	return in.Needs, nil
}
