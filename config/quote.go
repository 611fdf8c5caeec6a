package config

import "strings"

const hidden = "…"

// nameOfVariable returns name if it is surely the name of an environment variable,
// else "…". By mistake, it may be the value: a token that is all of capitals and
// digits has no words of at most 20 of them.
func nameOfVariable(name string) string {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return hidden
	}
	for _, word := range strings.Split(name, "_") {
		if len(word) > 20 || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			return hidden
		}
	}
	return name
}

// quotedReference returns what is surely no secret of the reference ${body}.
func quotedReference(body string) string {
	source, rest, ok := strings.Cut(body, ":")
	if !ok {
		return nameOfVariable(body)
	}
	return plainWord(source) + ":" + strings.Repeat(hidden, min(len(rest), 1))
}

// plainWord returns word if it is surely one, such as a type or the ID of an input,
// else "…".
func plainWord(word string) string {
	for _, part := range strings.FieldsFunc(word, func(c rune) bool { return c == '-' || c == '_' || c == '.' }) {
		if len(part) > 20 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return hidden
		}
	}
	return word
}
