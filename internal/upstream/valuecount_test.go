package upstream

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValuesBesideTheResult(t *testing.T) {
	for message, want := range map[string]int{
		`{}`:                              1,
		`{"id":1,"error":{"data":[1,2]}}`: 8,
		`{"result":{"a":[1,2]},"id":1}`:   3, // the brace, the comma and the colon after it
		`{"id":1,"result":[[[]]]}`:        3,
		`{"id":1, "result" : [[[]]] }`:    3,
		`{"a":{"result":[1,2]}}`:          6, // not of the message
		`[{"result":[1,2]}]`:              5,
		`{"Result":[1,2]}`:                4, // we may count too much, never too little
		`{"\u0072esult":[1,2]}`:           4,
		`{"result\"":[1,2]}`:              4,
		`{"results":[1,2]}`:               4,
		`{"error":"result","data":[1,2]}`: 6,
		`{"a":"[,\"{:","b":"result"}`:     4,
	} {
		var v valueCounter
		for _, c := range []byte(message) {
			v.take(c)
		}
		assert.Equal(t, want, v.n, message)
		assert.True(t, hasMoreValues([]byte(message+strings.Repeat(" ", 100)), want-1), message)
		assert.False(t, hasMoreValues([]byte(message+strings.Repeat(" ", 100)), want), message)
	}
}

// FuzzValuesBesideTheResult counts the values of any message as text.CountValues does,
// without those of a result.
func FuzzValuesBesideTheResult(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a, [b]"}]}}`)
	f.Add(`{"error":{"data":[[],{"result":1}]},"result":"\\\""}`)
	f.Add(`{"result":[],"result":[1,2]}`)
	f.Fuzz(func(t *testing.T, message string) {
		var v valueCounter
		for _, c := range []byte(message) {
			v.take(c)
		}
		all := text.CountValues([]byte(message))
		require.LessOrEqual(t, v.n, all)
		if !strings.Contains(message, `"result"`) {
			require.Equal(t, all, v.n)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(message), &members) != nil || strings.Count(message, `"result"`) > 1 || strings.Contains(message, `\u`) {
			return
		}
		if members["result"] == nil {
			require.Equal(t, all, v.n)
		} else if strings.Contains(message, `"result"`) { // its colon is counted with it
			require.Equal(t, all-1-text.CountValues(members["result"]), v.n)
		}
	})
}

// Of a long key, no more is kept than tells that it is none of ours.
func TestKeysAreNotKept(t *testing.T) {
	for key, result := range map[string]bool{"result": true, "resul": false, "results": false, strings.Repeat("result", 1000): false} {
		var v valueCounter
		for _, c := range []byte(`{"` + key + `":[`) {
			v.take(c)
		}
		assert.Equal(t, result, v.result, key)
		assert.LessOrEqual(t, len(v.key), len(resultKey)+1)
	}
}

// Random messages, whose members are known as they were written: their values, and whether they may
// be answers.
func TestValuesOfRandomMessages(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) string
	keys := []string{`id`, `ID`, `i\u0064`, `method`, `Method`, `result`, `results`, `resul`, `error`, `a"`, `metho`, ``}
	key := func() string { return strings.ReplaceAll(keys[random.IntN(len(keys))], `"`, `\"`) }
	list := func(n int, element func() string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = element()
		}
		return strings.Join(all, []string{",", ", ", "\n,"}[random.IntN(3)])
	}
	value = func(depth int) string {
		switch random.IntN(6 + 2*min(depth, 1)) {
		case 0:
			return `"` + key() + `"`
		case 1:
			return `"[{,:\\\"` + key() + `"`
		case 2:
			return "null"
		case 3, 4, 5:
			return "-1.5e3"
		case 6:
			return "[" + list(random.IntN(4), func() string { return value(depth - 1) }) + "]"
		}
		return "{ " + list(random.IntN(4), func() string { return `"` + key() + `" : ` + value(depth-1) }) + "}"
	}
	for range 2000 {
		var without string // the message without its results
		id, method := false, false
		message := "{" + list(random.IntN(5), func() string {
			k, v := key(), value(3)
			id = id || strings.EqualFold(k, "id") || strings.Contains(k, `\`)
			method = method || k == "method"
			if k == "result" {
				without += `,"result"`
			} else {
				without += `,"` + k + `":` + v
			}
			return `"` + k + `": ` + v
		}) + "}"
		require.True(t, json.Valid([]byte(message)), message)
		var v valueCounter
		for _, c := range []byte(message) {
			v.take(c)
		}
		want := text.CountValues([]byte("{" + strings.TrimPrefix(without, ",") + "}"))
		require.Equal(t, want, v.n, message)
		require.Equal(t, id && !method, v.mayAnswer(), message)
		v.reset()
		require.Equal(t, valueCounter{key: v.key}, v)
		require.Empty(t, v.key)
	}
}
