package cause

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// What people read of errors, and the cause of each.
func TestGoldenCauses(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("An error, its kind and what is said of it, and the whole if that is told in other words.\n\n")
	show := func(err error) {
		c, told := Of(err), Explain(err)
		fmt.Fprintf(&b, "%v\n  %q: %s\n", err, c.Kind, c.What)
		if told != err {
			fmt.Fprintf(&b, "  told: %v\n", told)
		}
	}
	ended := func(status, words string) { show(fmt.Errorf("%s; its last words: %q", status, words)) }
	for _, code := range []string{"E404", "ETARGET", "E401", "E403", "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNRESET", "ENOSPC", "EACCES", "EWHAT"} {
		ended("exit status 1", "npm error code "+code+" npm error network it went wrong npm error A complete log of this run can be found in: /x.log")
	}
	for _, words := range []string{
		"npm ERR! code E404 npm ERR! 404 'left-pad.js_2~x@^1.0' is not in this registry.", "npm error code E404 'a@1' is gone", "npm error code ETARGET npm error notarget No matching version found for a@9 npm error", "npm error E404", "npm warn code E404",
		"npm error code EEXIST in /h/_npx/01234567/x", "npm error code ENOENT in /h/_npx/0123456/x", "npm error code ENOENTX in /h/_npx/01234567/x", "Cannot find package 'a' /h/_npx/01234567", "Cannot find module 'a' (/h/_npx/01234567)", "Cannot find module 'a' '/h/_npx/01234567'", "Cannot find module a /h/_npx/01234567",
		"Because a==1 was not found in the package registry", "Because there is no version of a==9 here", "pull access denied for a/b, sorry", "pull access denied for a", "manifest for a/b:1 not found", "manifest for not found", "Cannot connect to the Docker daemon",
		"", "plain words", "Error: x at new Y (file:///a.js:1)", "Error: x at async z (a)", "Error: x at Object.<anonymous> (/a.js)", "Error: x at node:internal", "Error: x at /a.js", `Error: x at C:\a.js`, "Error: x at home", "Error: x { code: 'E' }", "Error: x { errno: 1", "Error: x: { a", "Error: x { other: 1 }", "Error: x at a.b [as c] (d)",
		"TypeError: a is not a function", "warn TypeError [ERR_X]: a", "myError: a", "Error:", "xError: a", "Exception: a", "java.lang.IllegalStateException: a", "SomeException: a",
		"Traceback (most recent call last) KeyError: 'a' then ValueError: b", "Traceback (most recent call last) nothing", "KeyError: 'a' then ValueError: b", "Traceback (most recent call last) OSError: x at /a", "Traceback (most recent call last) SSLError: a HTTPError [ERR_A]: b",
	} {
		ended("exit status 1", words)
	}
	for _, status := range []string{"exit status 127", "signal: killed", "signal: segmentation fault (core dumped)", "signal: trace/breakpoint trap", "signal: user defined signal 1", "exit status 0xc0000005", "the process ended", "exit status"} {
		for _, words := range []string{"", "ready", "Error: ready"} {
			ended(status, words)
		}
		show(errors.New(status))
	}
	for _, err := range []error{
		fmt.Errorf("starting: %w", exec.ErrNotFound), fmt.Errorf(`starting: exec: npx -y x: %w`, exec.ErrNotFound), fmt.Errorf("%w: %w", &exec.Error{Name: "a", Err: fs.ErrPermission}, exec.ErrNotFound),
		&fs.PathError{Op: "fork/exec", Path: "/a", Err: fs.ErrInvalid}, &fs.PathError{Op: "open", Path: "/a", Err: fs.ErrNotExist},
		fmt.Errorf("no answer: to that: %w", context.DeadlineExceeded), context.DeadlineExceeded, context.Canceled, &net.DNSError{Name: "a.invalid", Err: "no such host"},
		errors.New("unexpected status code: 405"), errors.New("request failed with status 401: no"), errors.New("status 4040"), errors.New("initialize: refreshing the token: refresh token request failed with status 503: {}"), errors.New(`asking "as.example" for a token of the client "c": the authorization server answers with status 503`), errors.New("status: 503"), errors.New("status 50"), errors.New("status code 502"),
		errors.New("dial tcp 10.0.0.1:1: connect: no route to host"), errors.New("dial tcp [::1]:1: connectex: connection timed out"), errors.New("dial tcp a:1: connect: network is unreachable"), errors.New("dial tcp a:1: i/o timeout"), errors.New("dial udp a:1: connect: connection refused"),
		errors.New("remote error: tls: bad certificate"), errors.New("the event stream ended: unexpected EOF"), errors.New("unexpected content type"), errors.New("mcphybrid: initialize: mcphybrid: transport error: what"), errors.New("x mcphybrid: y"),
		errors.New("its folder is there"), errors.New("the folder its folder is in"), errors.New("mcphybrid: " + UnsetVariables + "A, B"), errors.New("x " + UnsetVariables + "A"),
		ErrToken, ErrNoLogin, fmt.Errorf("a: %w: %q b", ErrOutput, "said"), errors.New("a\nb\tc"),
		errors.New("status 500: <!doctype html><p>x</p></html>; and more"), errors.New("a:<HTML x>\nb</HTML>\n"), errors.New("a: <htmlx>"), errors.New("no colon <html>x</html>"), errors.New("request failed with status 404: <html>never ends"),
	} {
		show(err)
	}
	golden.Compare(t, "causes.golden", b.String())
}
