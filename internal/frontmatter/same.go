package frontmatter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Same returns nil if front, of a SKILL.md, says what listed does, which is a JSON object, and
// nothing else. Otherwise it says which field differs, or why front can't be read.
func Same(front []byte, listed json.RawMessage) error {
	all, err := read(front)
	if err != nil {
		return fmt.Errorf("its front matter can't be compared: %w", err)
	}
	var want any
	d := json.NewDecoder(bytes.NewReader(listed))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		return fmt.Errorf("the list has no front matter: %w", err)
	}
	if field, ok := differs("", all, want); ok {
		return fmt.Errorf("its front matter differs from the list: %q", field)
	}
	return nil
}

// differs reports whether a value is another than the listed one, and returns the field in which
// it is. name is that of the value.
func differs(name string, value, listed any) (field string, ok bool) {
	switch value := value.(type) {
	case mapping:
		listed, ok := listed.(map[string]any)
		if !ok {
			return name, true
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			within := strings.TrimPrefix(name+"."+key, ".")
			other, there := listed[key]
			if !there {
				return within, true
			}
			if field, ok := differs(within, value[key], other); ok {
				return field, true
			}
		}
		for _, key := range slices.Sorted(maps.Keys(listed)) {
			if _, there := value[key]; !there {
				return strings.TrimPrefix(name+"."+key, "."), true
			}
		}
		return "", false
	case []any:
		listed, ok := listed.([]any)
		if !ok || len(listed) != len(value) {
			return name, true
		}
		for i, e := range value {
			if field, ok := differs(fmt.Sprintf("%s[%d]", name, i), e, listed[i]); ok {
				return field, true
			}
		}
		return "", false
	case scalar:
		return name, !value.means(listed)
	}
	return name, true
}

// means reports whether s can mean a value of JSON. What a plain text means depends on the
// version of YAML and on who reads it: each meaning counts, and the text itself does.
func (s scalar) means(listed any) bool {
	if text, ok := listed.(string); ok {
		return s.text == text || s.plain && sameTime(s.text, text)
	}
	if !s.plain {
		return false
	}
	switch listed := listed.(type) {
	case nil:
		return slices.Contains([]string{"", "~", "null", "Null", "NULL"}, s.text)
	case bool:
		words := []string{"false", "no", "off", "n"}
		if listed {
			words = []string{"true", "yes", "on", "y"}
		}
		return slices.ContainsFunc(words, func(word string) bool {
			return s.text == word || s.text == strings.ToUpper(word) || s.text == strings.ToUpper(word[:1])+word[1:]
		})
	case json.Number:
		return sameNumber(s.text, string(listed))
	}
	return false
}

// sameTime reports whether two texts are the same day, or the same moment.
func sameTime(a, b string) bool {
	when := func(s string) (t time.Time, err error) {
		for _, layout := range []string{time.DateOnly, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
			if t, err = time.Parse(layout, s); err == nil {
				break
			}
		}
		return t, err
	}
	first, err := when(a)
	if err != nil {
		return false
	}
	second, err := when(b)
	return err == nil && first.Equal(second)
}

// maxDigits is how many digits a whole number may have that is not compared as it is written.
const maxDigits = 100

// sameNumber reports whether a plain text can be that number of JSON.
func sameNumber(s, number string) bool {
	if s == number {
		return true
	}
	if len(s) > maxDigits || len(number) > maxDigits {
		return false
	}
	s = strings.TrimPrefix(s, "+")
	want, whole := new(big.Int).SetString(number, 10)
	for _, base := range []int{10, 0} { // 010 is 10, or 8
		if got, ok := new(big.Int).SetString(s, base); ok && whole && got.Cmp(want) == 0 {
			return true
		}
	}
	if _, ok := new(big.Int).SetString(s, 0); ok && whole {
		return false
	}
	got, err := strconv.ParseFloat(s, 64)
	other, failed := strconv.ParseFloat(number, 64)
	return err == nil && failed == nil && got == other
}
