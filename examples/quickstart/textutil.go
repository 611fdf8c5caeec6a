package main

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

var algorithms = []string{"md5", "sha1", "sha256", "sha512"}

// digest returns the hexadecimal hash of data.
func digest(algorithm string, data []byte) string {
	var sum []byte
	switch algorithm {
	case "md5":
		h := md5.Sum(data)
		sum = h[:]
	case "sha1":
		h := sha1.Sum(data)
		sum = h[:]
	case "sha512":
		h := sha512.Sum512(data)
		sum = h[:]
	default:
		h := sha256.Sum256(data)
		sum = h[:]
	}
	return hex.EncodeToString(sum)
}

// splitLines returns the lines of s without their line breaks.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// addAll appends to list those items that it lacks.
func addAll(list, items []string) []string {
	for _, item := range items {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// maxProgram bounds the instructions of a regular expression, which take
// effect on every byte of the text. Counted repetitions add up.
const maxProgram = 500

func compile(pattern string, ignoreCase bool) (*regexp.Regexp, error) {
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxProgram {
		return nil, errors.New("the regular expression is too complex")
	}
	return regexp.Compile(pattern)
}

// replaceAll is strings.ReplaceAll with a limit on the additional size.
func replaceAll(s, old, new string) (string, error) {
	if err := checkOutput(strings.Count(s, old) * (len(new) - len(old))); err != nil {
		return "", err
	}
	return strings.ReplaceAll(s, old, new), nil
}

// tidy rounds away the noise of binary fractions, such as in 0.1+0.2.
func tidy(x float64) float64 {
	if x == math.Trunc(x) || math.IsNaN(x) {
		return x
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 14, 64), 64)
	return x
}

// tidyAll applies tidy to each number of list in place.
func tidyAll(list []float64) []float64 {
	for i, x := range list {
		list[i] = tidy(x)
	}
	return list
}
