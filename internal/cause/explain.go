package cause

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// An explained error begins with its cause.
type explained struct {
	err   error
	cause Cause
	text  string
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// Explain returns err as people should read it: with its cause before all that programs say
// around it, where that is much, and without the noise of it and the names of the layers that it
// came through. [Of] returns the same for both.
func Explain(err error) error {
	if err == nil || errors.As(err, new(*explained)) {
		return err
	}
	said := textOf(err)
	tidy := bare(tidied(said))
	c := Of(err)
	switch c.Kind {
	case Line, Package, Registry, Broken, Status:
		return &explained{err, c, fmt.Sprintf("%s (%s)", c.What, tidy)}
	}
	if tidy == said {
		return err
	}
	return &explained{err, c, tidy}
}

var (
	page     = regexp.MustCompile(`(?is):\s*<(?:!doctype html|html)\b.*?(?:</html>\s*|$)`)
	npmNote  = regexp.MustCompile(`npm (?:error|ERR!) 404 Note that you can also install from a npm (?:error|ERR!) 404 tarball, folder, http url, or git url\.`)
	npmLog   = regexp.MustCompile(`\s*npm (?:error|ERR!) A complete log of this run can be found in:[^"…]*`)
	npmStart = regexp.MustCompile(`npm (?:error|ERR!)( code E\w+)?(?: (?:404|notarget|network)\b)* ?`)
)

// tidied returns what programs say without what says nothing of the cause.
func tidied(said string) string {
	said = page.ReplaceAllString(said, "")
	m := npmCode.FindStringSubmatch(said)
	if m == nil {
		return said
	}
	if _, known := npmCodes[m[1]]; known { // else the log may know more
		said = npmLog.ReplaceAllString(npmNote.ReplaceAllString(said, ""), "")
	}
	return npmStart.ReplaceAllStringFunc(said, func(start string) string {
		if strings.Contains(start, " code E") {
			return start
		}
		return ""
	})
}
