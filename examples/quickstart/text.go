package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type (
	textArg   struct{ Text string }
	jsonArg   struct{ JSON string }
	regexArgs struct {
		Text, Pattern, Replacement string
		IgnoreCase                 bool `json:"ignore_case"`
		Limit                      int
	}
	foldArgs struct {
		Text       string
		IgnoreCase bool `json:"ignore_case"`
	}
	uniqueArgs struct {
		Text   string
		Unique bool
	}
)

// textServer serves transformations and analyses of texts.
func textServer() *server.MCPServer {
	s := newServer("text", "Transforms and analyzes text, JSON and CSV.")
	text := str("text", "Text to work on.", required)
	ignoreCase := flag("ignore_case", "Whether upper and lower case are the same.")
	document := str("json", "JSON document.", required)
	pattern := str("pattern", "Regular expression in RE2 syntax.", required, mcp.MinLength(1), mcp.MaxLength(500))

	query(s, "change_case",
		"Convert text to another case. Upper, lower and title keep the text as it is otherwise; camel, pascal, snake, kebab and constant turn its words into a single identifier as used in programming languages.",
		func(in struct{ Text, Style string }) (any, error) { return changeCase(in.Text, in.Style), nil },
		text, str("style", "Case to convert to.", required,
			mcp.Enum("upper", "lower", "title", "camel", "pascal", "snake", "kebab", "constant")))

	query(s, "slugify", "Turn a title into a slug for web addresses and file names: lower-case ASCII letters and digits with hyphens between the words.",
		func(in struct {
			Text      string
			MaxLength int `json:"max_length"`
		}) (any, error) {
			return slugify(in.Text, in.MaxLength), nil
		},
		text, integer("max_length", "Longest slug to return; words that do not fit are left out.", 1, 1000, mcp.DefaultNumber(80)))

	query(s, "count_words", "Count the words, characters, lines and sentences of a text and estimate the minutes it takes to read.",
		func(in textArg) (any, error) { return countWords(in.Text), nil }, text)

	query(s, "word_frequency", "List the most frequent words of a text with the number of their occurrences.",
		func(in struct {
			Text      string
			Limit     int
			MinLength int `json:"min_length"`
		}) (any, error) {
			return wordFrequency(in.Text, in.Limit, in.MinLength), nil
		},
		text,
		integer("limit", "How many words to list.", 1, 1000, mcp.DefaultNumber(20)),
		integer("min_length", "Shortest words to consider, in letters.", 1, 100, mcp.DefaultNumber(1)))

	query(s, "regex_find", "Find all matches of a regular expression in a text, with their positions and capture groups.",
		func(in regexArgs) (any, error) { return regexFind(in) },
		text, pattern, ignoreCase, integer("limit", "Most matches to return.", 1, 5000, mcp.DefaultNumber(100)))

	query(s, "regex_replace", "Replace all matches of a regular expression in a text. The replacement may refer to capture groups as $1 or ${name}; write $$ for a dollar sign.",
		func(in regexArgs) (any, error) { return regexReplace(in) },
		text, pattern, str("replacement", "What to put in place of each match.", required), ignoreCase)

	query(s, "sort_lines", "Sort the lines of a text alphabetically, by the numbers they start with or by length.",
		func(in sortArgs) (any, error) { return sortLines(in), nil },
		text, str("by", "What to sort by.", mcp.Enum("alphabet", "number", "length"), mcp.DefaultString("alphabet")),
		flag("reverse", "Whether to sort in descending order."), ignoreCase)

	query(s, "dedupe_lines", "Remove duplicate lines from a text and keep the first of each in the original order.",
		func(in foldArgs) (any, error) { return dedupeLines(in.Text, in.IgnoreCase), nil },
		text, ignoreCase)

	query(s, "wrap_text", "Wrap paragraphs so that no line is longer than a given width, unless a single word is. Blank lines separate paragraphs.",
		func(in struct {
			Text, Indent string
			Width        int
		}) (any, error) {
			return wrapText(in.Text, in.Indent, in.Width), nil
		},
		text, integer("width", "Longest line in characters.", 1, 1000, mcp.DefaultNumber(80)),
		str("indent", "Prefix of each line, such as spaces or a comment sign.", mcp.MaxLength(20)))

	query(s, "base64_encode", "Encode text as Base64.",
		func(in struct {
			Text    string
			URLSafe bool `json:"url_safe"`
		}) (any, error) {
			if in.URLSafe {
				return base64.RawURLEncoding.EncodeToString([]byte(in.Text)), nil
			}
			return base64.StdEncoding.EncodeToString([]byte(in.Text)), nil
		},
		text, flag("url_safe", "Whether to use the alphabet for URLs, without padding."))

	query(s, "base64_decode", "Decode Base64 to text. Accepts the standard and the URL alphabet, with or without padding.",
		func(in textArg) (any, error) {
			clean := strings.NewReplacer("-", "+", "_", "/", "=", "", "\n", "", "\r", "", " ", "").Replace(in.Text)
			return decoded(base64.RawStdEncoding.DecodeString(clean))
		},
		text)

	query(s, "hex_encode", "Encode the bytes of a text as hexadecimal digits.",
		func(in textArg) (any, error) { return hex.EncodeToString([]byte(in.Text)), nil }, text)

	query(s, "hex_decode", "Decode hexadecimal digits to text.",
		func(in textArg) (any, error) {
			return decoded(hex.DecodeString(strings.Join(strings.Fields(in.Text), "")))
		},
		text)

	part := str("part", "Part of the URL that the text belongs to.", mcp.Enum("query", "path"), mcp.DefaultString("query"))
	query(s, "url_encode", "Percent-encode text for use in a URL.",
		func(in struct{ Text, Part string }) (any, error) {
			if in.Part == "path" {
				return url.PathEscape(in.Text), nil
			}
			return url.QueryEscape(in.Text), nil
		},
		text, part)

	query(s, "url_decode", "Decode percent-encoded text from a URL.",
		func(in struct{ Text, Part string }) (any, error) {
			if in.Part == "path" {
				return url.PathUnescape(in.Text)
			}
			return url.QueryUnescape(in.Text)
		},
		text, part)

	query(s, "hash_text", "Compute the cryptographic hash of a text, by default SHA-256, as hexadecimal digits.",
		func(in struct{ Text, Algorithm string }) (any, error) {
			return digest(in.Algorithm, []byte(in.Text)), nil
		},
		text, str("algorithm", "Hash algorithm.", mcp.Enum(algorithms...), mcp.DefaultString("sha256")))

	query(s, "json_pretty", "Pretty-print a JSON document with indentation, keeping the order of its keys. Reports the position of a syntax error, if any.",
		func(in struct {
			JSON   string
			Indent int
		}) (any, error) {
			var out bytes.Buffer
			err := checkJSON(in.JSON)
			if err == nil {
				err = json.Indent(&out, []byte(in.JSON), "", strings.Repeat(" ", in.Indent))
			}
			return out.String(), err
		},
		document, integer("indent", "Spaces per level.", 1, 4, mcp.DefaultNumber(2)))

	query(s, "json_minify", "Minify a JSON document by removing all insignificant whitespace.",
		func(in jsonArg) (any, error) {
			var out bytes.Buffer
			err := checkJSON(in.JSON)
			if err == nil {
				err = json.Compact(&out, []byte(in.JSON))
			}
			return out.String(), err
		},
		document)

	query(s, "json_query", "Extract a single value from a JSON document by a JSON Pointer such as /users/0/name (RFC 6901), instead of reading the whole document.",
		func(in struct{ JSON, Pointer string }) (any, error) { return jsonQuery(in.JSON, in.Pointer) },
		document, str("pointer", "JSON Pointer to the value; empty for the whole document.", required, mcp.MaxLength(1000)))

	query(s, "csv_to_json", "Convert CSV, a table of comma-separated values such as a spreadsheet export, to a JSON array with one object per row.",
		func(in csvArgs) (any, error) { return csvToJSON(in) },
		str("csv", "Table whose first row names the columns.", required),
		str("delimiter", "Character between the columns.", mcp.Enum(",", ";", "\t", "|"), mcp.DefaultString(",")),
		flag("infer_types", "Whether to turn numbers and booleans into JSON numbers and booleans instead of strings."))

	query(s, "levenshtein_distance", "Compute the edit distance of two strings, the number of characters to insert, delete or substitute, and their similarity from 0 to 1. Helps to find typos and near duplicates.",
		func(in struct{ A, B string }) (any, error) { return levenshtein([]rune(in.A), []rune(in.B)), nil },
		str("a", "First string.", required, mcp.MaxLength(5000)), str("b", "Second string.", required, mcp.MaxLength(5000)))

	query(s, "diff_text", "Compare two texts line by line and return their differences as a unified diff, or nothing if they are equal.",
		func(in struct {
			A, B    string
			Context int
		}) (any, error) {
			return unifiedDiff("a", "b", in.A, in.B, in.Context)
		},
		str("a", "Old text.", required), str("b", "New text.", required),
		integer("context", "Unchanged lines to show around each difference.", 0, 50, mcp.DefaultNumber(3)))

	query(s, "fill_template",
		"Fill in a template by replacing placeholders like {{name}} with values. Useful for mail merges and other boilerplate with few variable parts. Placeholders without a value are an error, unless they are to be kept.",
		func(in templateArgs) (any, error) { return fillTemplate(in) },
		str("template", "Text with placeholders in double braces.", required),
		mcp.WithObject("values", mcp.Description("Values of the placeholders, by name."), mcp.Required(),
			mcp.AdditionalProperties(map[string]any{"type": []string{"string", "number", "boolean"}})),
		flag("keep_unknown", "Whether to keep placeholders that have no value."))

	unique := mcp.WithBoolean("unique", mcp.Description("Whether to list each one only once."), mcp.DefaultBool(true))
	query(s, "extract_emails", "Extract the email addresses from a text in the order they occur.",
		func(in uniqueArgs) (any, error) { return extract(emailPattern, in, ""), nil }, text, unique)
	query(s, "extract_urls", "Extract the web links, that is, http and https URLs, from a text in the order they occur.",
		func(in uniqueArgs) (any, error) { return extract(urlPattern, in, ".,;:!?'\")]}"), nil }, text, unique)

	return s
}

// decoded returns data as text if it is one.
func decoded(data []byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, errors.New("the decoded bytes are not UTF-8 text")
	}
	return string(data), nil
}
