package resources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestForms(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"file:///etc/passwd": "", "mem://a": "", "plain": "", "mem://a/": "", "a:b%": "a://b%",
		"file:///%65tc": "file:///etc", "FILE:///etc": "file:///etc", "file:////etc//x": "file:///etc/x", "file:///a/../etc/": "file:///etc/",
		"mem://Host/x": "mem://host/x", "a:../b/../c": "a:../c a://c", "a://b/../c": "a://b/c a://c", "web://h?a": "web://h",
		"file:///a/%2e%2e/etc": "file:///a/../etc file:///etc", `file:///a\..\etc`: "file:///a/../etc file:///etc",
		"a:../../b": "a://b", "a:x/../../b": "a:../b a://b", "mem://h//": "mem://h/", "file:////": "file:///",
		"file:///a%2fb/../x": "file:///a/b/../x file:///x file:///a/x", "%61/../b": "a/../b b",
		"file:/etc": "file:///etc", "file:etc": "file:///etc", "file://Host/etc": "file://host/etc file:///etc",
		"https://ada:x@H.:443/x": "https://ada:x@h.:443/x https://h/x", "https://h:00443": "https://h", "http://h:0443": "http://h:443", "http:////h/x": "http:///h/x http://h/x", "mem://ada@h:80/x": "",
	} {
		got, err := Forms(uri)
		require.NoError(t, err)
		assert.Equal(t, append([]string{uri}, strings.Fields(want)...), got, uri)
	}
	for _, uri := range []string{"mem:%" + strings.Repeat("25", 100) + "41", "mem:%" + strings.Repeat("25", 2000) + "41"} {
		_, err := Forms(uri)
		assert.ErrorContains(t, err, "it can be taken for too many others", len(uri))
	}
	for _, uri := range []string{"https://b\u00fcro/x", "ws:%25C3%25BC", "http://a%7f", "https://h%2f\u00fc"} {
		_, err := Forms(uri)
		assert.ErrorContains(t, err, "it has a host with characters beside those of ASCII", uri)
	}
}

// closed checks that the forms of a URI are within the limits and that no step leads out
// of them.
func closed(t *testing.T, uri string) {
	forms, err := Forms(uri)
	if err != nil {
		return
	}
	if len(forms) > 64+1 || forms[0] != uri {
		t.Fatalf("%q", forms)
	}
	for _, form := range forms {
		for i, step := range steps {
			if to := foldHost(step(foldHost(form))); !slices.Contains(forms, to) {
				t.Fatalf("%q: step %d leads from %q to %q", uri, i, form, to)
			}
		}
	}
}

// What is denied is denied in all spellings, whatever a server does first.
func TestDeniedInAllSpellings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ deny, uris string }{
		{"s/file:///etc/*", "file:///pub/../etc/x%3F/../../.. file:///pub/../etc/x%23/../../.. file:///pub/%252e%252e/etc/x file:/etc/x file:etc/x " +
			"file://localhost/etc/x file://Any/%65tc/x file:////etc/x FILE:///etc/x file:///pub%5c..%5cetc%5cx file:///pub/a\\b/../../etc/x file:///pub/%2e%2e/../etc/x"},
		{"s/file:///pub/secret", "file:///pub/secret?x file:///pub/secret#x file:///pub/secret%3Fx file:///pub/a%2f/../../secret"},
		{"s/https://api.example.com/*", "https://ada@api.example.com/x https://api.example.com:443/x https://api.example.com./x https:api.example.com/x https:///API.example.com/x https://api.example.com:/x"},
		{"s/*api.EXAMPLE.com/*", "https://api.example.com/x https://API.Example.com/%78"},
	} {
		for uri := range strings.FieldsSeq(test.uris) {
			closed(t, uri)
			forms, err := Forms(uri)
			require.NoError(t, err)
			assert.True(t, slices.ContainsFunc(forms, func(form string) bool {
				return rules.Subject{Server: "s", Own: "x", URI: form}.Forbidden([]string{test.deny})
			}), "%s %q", test.deny, forms)
		}
	}
}

// Few questions are asked about the templates of a server: none after one that permits,
// and one for each if one form is barred. Nothing is asked after the context's end.
func TestLocateAsksLittle(t *testing.T) {
	t.Parallel()
	var entries []*Entry
	for i := range 500 {
		tmpl, err := parseTemplate("{+x}")
		require.NoError(t, err)
		entries = append(entries, &Entry{Item: &Item{Kind: Template, ID: fmt.Sprint(i), template: tmpl}, Names: rules.Subject{Server: "s", Own: fmt.Sprint(i)}})
	}
	const uri = "file:///a/../%62?c"
	forms, err := Forms(uri)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	asked, barred, end := 0, "", false
	v := &View{Shelves: []Owned{{Shelf: &Shelf{entries: entries}}}, Bar: func(rules.Subject) error { return nil }, BarURI: func(_ any, of rules.Subject) error {
		asked++
		if end {
			cancel()
		}
		if of.URI == barred {
			return errors.New("barred")
		}
		return nil
	}}
	at, err := v.Locate(ctx, Resource, "", uri, nil)
	require.NoError(t, err)
	assert.Equal(t, "s", at.Server)
	assert.LessOrEqual(t, asked, len(forms))
	asked, barred = 0, forms[len(forms)-1]
	_, err = v.Locate(ctx, Resource, "", uri, nil)
	assert.ErrorContains(t, err, "barred")
	assert.LessOrEqual(t, asked, 500+len(forms))
	asked, end = 0, true
	_, err = v.Locate(ctx, Resource, "", uri, nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.LessOrEqual(t, asked, len(forms))
}

// The forms of all that a server lists have a limit together.
func TestListedFormsAreBounded(t *testing.T) {
	t.Parallel()
	l := &Lister{Server: "s", Names: func(own string) rules.Subject { return rules.Subject{Server: "s", Own: own} }, Bar: func(rules.Subject) error { return nil }, MaxBytes: 1 << 20}
	var all upstream.List
	all.Elements[upstream.Resources] = make([]upstream.Element, 1500)
	for i := range all.Elements[upstream.Resources] {
		all.Elements[upstream.Resources][i].Raw = fmt.Appendf(nil, `{"uri":"file:///%d/%%41%s","name":"a"}`, i, strings.Repeat("x", 4000))
	}
	list, problems, err := l.Check(t.Context(), all, nil)
	require.NoError(t, err)
	assert.InDelta(t, 4<<20/4000, len(list), 20)
	assert.Len(t, problems, 1500-len(list))
	assert.ErrorContains(t, problems[0], "can be taken for others")
}
