package words

import "encoding/json"

// A SearchAnswer is the answer of the search tool.
type SearchAnswer struct {
	Tools   []FoundTool `json:"tools"`
	Count   int         `json:"count"`
	Message string      `json:"message"`
}

// A FoundTool is a tool that a search found.
type FoundTool struct {
	Name         string `json:"name"`
	OriginalName string `json:"original_name"`
	Server       string `json:"server"`
	Description  string `json:"description"`
	NeededBy     string `json:"needed_by,omitempty"` // the found tool that needs it
	ReadOnly     bool   `json:"read_only,omitempty"` // for a client: it says that it only reads

	InputSchema json.RawMessage `json:"inputSchema,omitempty"` // of one of the best tools that are called by another tool
}

// A SkillAnswer is the answer to a search for skills.
type SkillAnswer struct {
	Skills  []FoundSkill `json:"skills"`
	Count   int          `json:"count"`
	Message string       `json:"message"`
}

// A FoundSkill is a skill that a search found.
type FoundSkill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// A DescribeAnswer is the answer of the describe tool.
type DescribeAnswer struct {
	Tools    []DescribedTool `json:"tools"`
	Problems []string        `json:"problems,omitempty"`
}

// A DescribedTool is the definition of a tool.
type DescribedTool struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Needs       []string        `json:"needs,omitempty"`
	ReadOnly    bool            `json:"read_only,omitempty"` // for a client: it says that it only reads
}
