package mcphybrid

import (
	"encoding/json"
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
