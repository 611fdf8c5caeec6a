package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

const maxNesting = 50 // of a JSON document to work on

// checkJSON reports a syntax error with its position.
func checkJSON(document string) error {
	var syntax *json.SyntaxError
	err := json.Unmarshal([]byte(document), new(json.RawMessage))
	if errors.As(err, &syntax) {
		before := document[:min(int(syntax.Offset), len(document))]
		return fmt.Errorf("line %d: %w", 1+strings.Count(before, "\n"), err)
	}
	if err == nil && nesting(document) > maxNesting {
		return fmt.Errorf("the document is nested more than %d levels deep", maxNesting)
	}
	return err
}

// nesting returns how deep the arrays and objects of a valid document are nested.
func nesting(document string) int {
	decoder := json.NewDecoder(strings.NewReader(document))
	depth, deepest := 0, 0
	for {
		token, err := decoder.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
			deepest = max(deepest, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

func jsonQuery(document, pointer string) (any, error) {
	if err := checkJSON(document); err != nil {
		return nil, err
	}
	if pointer != "" && pointer[0] != '/' {
		return nil, errors.New("a JSON Pointer starts with a slash")
	}
	value := json.RawMessage(document)
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var object map[string]json.RawMessage
		var array []json.RawMessage
		found := false
		if json.Unmarshal(value, &object) == nil && object != nil {
			value, found = object[token]
		} else if i, err := strconv.Atoi(token); err == nil && json.Unmarshal(value, &array) == nil && 0 <= i && i < len(array) {
			value, found = array[i], true
		}
		if !found {
			return nil, fmt.Errorf("the document has nothing at %q of %s", token, pointer)
		}
	}
	return value, nil
}

type csvArgs struct {
	CSV, Delimiter string
	InferTypes     bool `json:"infer_types"`
}

func csvToJSON(in csvArgs) (any, error) {
	reader := csv.NewReader(strings.NewReader(in.CSV))
	reader.Comma = rune(in.Delimiter[0])
	header, err := reader.Read()
	if err == io.EOF {
		return "[]", nil
	} else if err != nil {
		return nil, err
	}
	for i, name := range header {
		header[i] = quote(name)
	}
	var out strings.Builder
	for separator := "["; ; separator = "," {
		row, err := reader.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		out.WriteString(separator + "{")
		for i, cell := range row {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(header[i] + ":" + jsonCell(cell, in.InferTypes))
		}
		out.WriteByte('}')
		if err := checkOutput(out.Len()); err != nil {
			return nil, err
		}
	}
	if out.Len() == 0 {
		return "[]", nil
	}
	return out.String() + "]", nil
}

func quote(s string) string {
	data, _ := marshal(s) // strings always marshal
	return string(data)
}

var jsonLiteral = regexp.MustCompile(`^(true|false|-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?)$`)

func jsonCell(cell string, inferType bool) string {
	if inferType && jsonLiteral.MatchString(cell) {
		return cell
	}
	return quote(cell)
}
