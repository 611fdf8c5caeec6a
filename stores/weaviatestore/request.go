package weaviatestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

const (
	maxReply   = 64 << 20 // bytes of an answer, in addition to what it repeats of the request
	maxRefusal = 64 << 10 // bytes read of a refusal
	maxShown   = 300      // characters of Weaviate's messages in errors
)

// A refusal is an answer with a status other than 200, or an error within the answer to
// a request of several parts.
type refusal struct {
	status  int    // HTTP status; 0 if it was 200
	message string // as Weaviate sent it
	shown   string // the message in Error; see call
}

func (r *refusal) Error() string {
	if r.status == 0 {
		return cmp.Or(r.shown, "refused without a reason")
	}
	status := strings.TrimSpace(fmt.Sprint(r.status, " ", http.StatusText(r.status)))
	if r.shown == "" {
		return status
	}
	return status + ": " + r.shown
}

// statusOf returns the HTTP status of a refusal, or 0.
func statusOf(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.status
	}
	return 0
}

// messageOf returns Weaviate's message in a refusal, or "".
func messageOf(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.message
	}
	return ""
}

// answered reports whether err is an answer of the engine rather than a failure to reach
// it.
func answered(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// call sends one request. If in is not nil, it is sent as JSON. If read is not nil, it
// receives the answer. All errors, including those of read, name the request. Their
// texts have bounded length and never contain the API key.
func (s *Store) call(ctx context.Context, method, path string, in any, read func(reply []byte) error) error {
	reply, err := s.roundTrip(ctx, method, path, in)
	if err == nil && read != nil {
		err = read(reply)
	}
	if err == nil {
		return nil
	}
	var sent *url.Error // its text repeats the URL, but path is clearer
	if errors.As(err, &sent) {
		err = sent.Err
	}
	var r *refusal
	if errors.As(err, &r) {
		err = &refusal{r.status, r.message, oneLine(s.hidden.Replace(r.message))}
	} else if text := err.Error(); s.hidden.Replace(text) != text || len(text) > maxShown {
		err = errors.New(oneLine(s.hidden.Replace(text)))
	}
	return fmt.Errorf("%s %s: %w", method, path, err)
}

func (s *Store) roundTrip(ctx context.Context, method, path string, in any) ([]byte, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.opts.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+s.opts.APIKey)
	}
	// All requests are safe to repeat. This entry without values tells net/http so:
	// it then retries on a new connection if the server has just closed the idle
	// one. The header is not sent.
	r.Header["Idempotency-Key"] = nil
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		reply, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // if reading fails, the status is the better error
		return nil, &refusal{status: resp.StatusCode, message: message(reply)}
	}
	limit := maxReply + 6*len(body) // one byte may come back as \u003c
	reply, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(reply) > limit {
		return nil, fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return reply, nil
}

// reasons holds Weaviate's explanations of a refusal.
type reasons struct {
	Error []struct {
		Message string `json:"message"`
	} `json:"error"`
}

// first returns the first reason, or "".
func (r *reasons) first() string {
	for _, e := range r.Error {
		if e.Message != "" {
			return e.Message
		}
	}
	return ""
}

// message returns the message in a refused request's answer: in Weaviate's format, in
// that of its web framework, or in any other.
func message(reply []byte) string {
	var weaviate reasons
	var framework struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(reply, &weaviate) // fields that it can't read stay empty
	_ = json.Unmarshal(reply, &framework)
	return cmp.Or(weaviate.first(), framework.Message, string(reply))
}

// oneLine returns the first characters of text, with spaces in place of characters that
// are not printable.
func oneLine(text string) string {
	cut := len(text) > 4*maxShown
	if cut {
		text = text[:4*maxShown]
	}
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)), " ")
	if runes := []rune(text); len(runes) > maxShown {
		text, cut = string(runes[:maxShown]), true
	}
	if cut {
		text += "…"
	}
	return text
}

// hiding returns a replacer that hides a secret, also when quoted for JSON or Go.
func hiding(secret string) *strings.Replacer {
	if secret == "" {
		return strings.NewReplacer()
	}
	var forms []string
	for _, form := range []string{secret, unquoted(literal(secret)), unquoted(fmt.Sprintf("%q", secret))} {
		forms = append(forms, form, "…")
	}
	return strings.NewReplacer(forms...)
}

func unquoted(s string) string { return s[1 : len(s)-1] }
