package vector

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// shown returns matches or records with few decimals.
func shown(v any) string {
	var list []string
	switch v := v.(type) {
	case []Match:
		for _, m := range v {
			list = append(list, fmt.Sprintf("%s/%s %.3f (words %.3f, similar %.3f)", m.Server, m.ID, m.Score, m.Words, m.Similarity))
		}
	case []Record:
		for _, r := range v {
			list = append(list, golden.Text(r))
		}
	}
	return strings.Join(list, "; ")
}

// testdata/memory.golden has a story of a store in memory.
func TestMemoryStoreGolden(t *testing.T) {
	ctx, gone := context.Background(), func() context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}()
	var b strings.Builder
	b.WriteString("A story of a store in memory: each step, then what it returns and what the scope has.\n\n")
	var s MemoryStore
	has := func(scope string) {
		sums, err := s.Sums(ctx, scope)
		ids := slices.Sorted(maps.Keys(sums))
		records, _ := s.Get(ctx, scope, ids)
		fmt.Fprintf(&b, "   %s has %s %v; %s\n", scope, golden.Text(sums), err, shown(records))
	}
	put := func(scope string, tools ...Record) {
		err := s.Upsert(ctx, scope, tools)
		fmt.Fprintf(&b, "upsert %s: %v\n", golden.Text(tools), err)
		for i := range tools { // the store keeps nothing of the caller's
			if tools[i].Vector != nil {
				tools[i].Vector[0] = 99
			}
		}
		has(scope)
	}
	find := func(scope string, q Query) {
		found, err := s.Search(ctx, scope, q)
		fmt.Fprintf(&b, "search %s %s: %s %v\n", scope, golden.Text(q), shown(found), err)
	}
	record := func(id, server, text string, v ...float32) Record {
		return Record{ID: id, Sum: "sum of " + id + text, Server: server, Text: text, Vector: v, Description: "D" + id, Schema: "{}"}
	}
	has("x")
	find("x", Query{Words: "soup", Limit: 3})
	put("x", record("a", "one", "stir the soup"), record("b", "two", "taste the soup"))
	find("x", Query{Vector: []float32{1, 0, 0}, Limit: 3})
	put("x", record("c", "one", "wash the dishes", 3, 4, 0))
	put("x", record("d", "two", "stir the tea", 0, 0, 2), record("e", "two", "a cup", 1, 0, 0), record("e", "two", "cup of soup", 0, 2, 0))
	put("x", record("f", "one", "wrong", 1, 2))
	put("x", record("f", "one", "zero", 0, 0, 0))
	put("x", record("f", "one", "endless", float32(math.Inf(1)), 0, 0))
	put("x", record("f", "one", "no number", float32(math.NaN()), 0, 0))
	find("x", Query{Words: "soup", Limit: 9})
	find("x", Query{Words: "soup", Limit: 1})
	find("x", Query{Words: "soup", Limit: 0})
	find("x", Query{Words: "soup", Limit: -1})
	find("x", Query{Words: "stir soup", Limit: 9, Servers: []string{"two"}})
	find("x", Query{Words: "soup", Limit: 9, Servers: []string{}})
	find("x", Query{Vector: []float32{0, 5, 0}, Limit: 9})
	find("x", Query{Vector: []float32{0, 5, 0}, Limit: 1})
	find("x", Query{Vector: []float32{0, 5, 0}, Limit: 9, Least: 0.8})
	find("x", Query{Vector: []float32{0, 5, 0}, Limit: 9, Least: 0.81})
	find("x", Query{Vector: []float32{0, 5, 0}, Limit: 9, Servers: []string{"one"}})
	find("x", Query{Vector: []float32{-1, 0, 0}, Limit: 9})
	find("x", Query{Vector: []float32{1, 0}, Limit: 9})
	find("x", Query{Vector: []float32{0, 0, 0}, Limit: 9})
	find("x", Query{Vector: []float32{}, Limit: 9})
	find("x", Query{Vector: []float32{0, 1, 1}, Words: "soup", Limit: 9, Alpha: 0.5})
	find("x", Query{Vector: []float32{0, 1, 1}, Words: "soup", Limit: 9, Alpha: 0})
	find("x", Query{Vector: []float32{0, 1, 1}, Words: "soup", Limit: 9, Alpha: 1})
	find("x", Query{Vector: []float32{0, 1, 1}, Words: "soup", Limit: 1, Candidates: 1, Alpha: 0.5})
	find("x", Query{Vector: []float32{0, 1, 1}, Words: "soup", Limit: 2, Candidates: 1, Alpha: 0.5})
	for _, alpha := range []float64{-0.001, 1.001, math.NaN()} {
		find("x", Query{Words: "soup", Limit: 9, Alpha: alpha})
	}
	find("x", Query{Limit: 9})
	put("ties", record("d", "s", "cup", 1, 1), record("b", "s", "cup", 2, 2), record("c", "s", "cup", 3, 3), record("a", "s", "cup", 4, 4), record("e", "s", "cup", 5, 5))
	find("ties", Query{Words: "cup", Limit: 2})
	find("ties", Query{Words: "cup", Limit: 2, Candidates: 2})
	find("ties", Query{Vector: []float32{1, 1}, Limit: 2, Candidates: 2})
	put("long", record("a", "s", "t", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), record("b", "s", "t", 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1), record("c", "s", "t", 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0))
	for i := range 11 {
		q := make([]float32, 11)
		q[i] = 1
		find("long", Query{Vector: q, Limit: 3})
	}
	found, err := s.SearchFunc(ctx, "x", Query{Words: "soup", Vector: []float32{0, 1, 1}, Alpha: 0.5, Limit: 9}, func(id string) bool { return id != "e" })
	fmt.Fprintf(&b, "without e: %s %v\n", shown(found), err)
	deleted := false
	found, err = s.SearchFunc(ctx, "x", Query{Words: "soup", Limit: 9}, func(string) bool {
		if !deleted {
			deleted = true
			_ = s.Delete(ctx, "x", []string{"a", "e"})
		}
		return true
	})
	fmt.Fprintf(&b, "while a and e are deleted: %s %v\n", shown(found), err)
	has("x")
	fmt.Fprintf(&b, "delete b and an unknown one: %v\n", s.Delete(ctx, "x", []string{"b", "z"}))
	has("x")
	fmt.Fprintf(&b, "delete of an unknown scope: %v\n", s.Delete(ctx, "none", []string{"b"}))
	found, err = s.Search(ctx, "x", Query{Words: "soup", Limit: 9})
	fmt.Fprintf(&b, "soup: %s %v\n", shown(found), err)
	records, _ := s.Get(ctx, "x", []string{"c", "none"})
	records[0].Vector[0] = 77
	b.WriteString("a caller changed what Get returned\n")
	has("x")
	_ = s.Delete(ctx, "x", []string{"c", "d"})
	b.WriteString("all deleted: other dimensions\n")
	put("x", record("g", "one", "new", 1, 0))
	fmt.Fprintf(&b, "drop: %v\n", s.Drop(ctx, "x"))
	has("x")
	has("ties")
	b.WriteString("\nWith a context that has ended:\n")
	fmt.Fprintf(&b, "upsert %v\n", s.Upsert(gone, "ties", []Record{record("z", "s", "z", 1, 1)}))
	fmt.Fprintf(&b, "delete %v\n", s.Delete(gone, "ties", []string{"a"}))
	sums, err := s.Sums(gone, "ties")
	fmt.Fprintf(&b, "sums %d %v\n", len(sums), err)
	records, err = s.Get(gone, "ties", []string{"a"})
	fmt.Fprintf(&b, "get %d %v\n", len(records), err)
	records, err = s.Get(gone, "none", []string{"a"})
	fmt.Fprintf(&b, "get of an unknown scope %d %v\n", len(records), err)
	found, err = s.Search(gone, "ties", Query{Words: "cup", Limit: 3})
	fmt.Fprintf(&b, "search %d %v\n", len(found), err)
	has("ties")
	fmt.Fprintf(&b, "drop %v\n", s.Drop(gone, "ties"))
	b.WriteString("\nMany records replaced again and again: what is found stays the same.\n")
	for round := range 70 {
		var many []Record
		for i := range 9 {
			many = append(many, record(fmt.Sprint(i), "s", fmt.Sprintf("text %d of %d", i, round), float32(i+1), 1))
		}
		_ = s.Upsert(ctx, "many", many)
		if r := round; r == 0 || r == 29 || r == 30 || r == 31 || r == 69 {
			found, err = s.Search(ctx, "many", Query{Vector: []float32{1, 1}, Words: fmt.Sprintf("%d", round), Alpha: 0.5, Limit: 3})
			all, _ := s.Search(ctx, "many", Query{Vector: []float32{1, 1}, Limit: 99})
			fmt.Fprintf(&b, "round %d: %d; %s %v\n", round, len(all), shown(found), err)
		}
	}
	golden.Compare(t, "memory.golden", b.String())
}

// testdata/fused.golden has what merges two results, and which vectors are ones.
func TestFusedGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What merges the results by words with those by vector: by scores, then by places.\n\n")
	words := []Match{{ID: "a", Server: "s", Words: 4}, {ID: "b", Server: "s", Words: 2}, {ID: "c", Server: "s", Words: 1}}
	similar := []Match{{ID: "b", Server: "s", Similarity: 0.9}, {ID: "d", Server: "t", Similarity: 0.5}, {ID: "a", Server: "s", Similarity: 0.1}}
	for _, c := range []struct {
		words, similar []Match
		alpha          float64
		n              int
	}{{words, similar, 0.6, 9}, {words, similar, 0, 9}, {words, similar, 1, 9}, {words, similar, 0.5, 2}, {words, nil, 0.6, 9}, {nil, similar, 0.6, 9}, {nil, nil, 0.6, 9}, {words, similar, 0.6, 0}, {words, similar, 0.6, -1},
		{[]Match{{ID: "b", Words: 1}, {ID: "a", Words: 1}}, nil, 0, 9}} {
		fmt.Fprintf(&b, "%d and %d, alpha %v, %d of them\n   %s\n", len(c.words), len(c.similar), c.alpha, c.n, shown(Fuse(c.words, c.similar, c.alpha, c.n)))
		for _, m := range FuseRanks(c.words, c.similar, c.n) {
			fmt.Fprintf(&b, "   %s/%s %.6f (words %.3f, similar %.3f)\n", m.Server, m.ID, m.Score, m.Words, m.Similarity)
		}
	}
	b.WriteString("\nWhich vectors are ones, for 2 dimensions, and their unit.\n\n")
	for _, v := range [][]float32{nil, {}, {1}, {3, 4}, {0, 0}, {0, -2}, {1, 2, 3}, {float32(math.NaN()), 1}, {float32(math.Inf(-1)), 1}, {math.MaxFloat32, math.MaxFloat32}, {1e-30, 0}} {
		unit, err := Unit(v)
		fmt.Fprintf(&b, "%v: %v; unit %v %v\n", v, Check(v, 2), unit, err)
	}
	b.WriteString("\nCheck for 0 dimensions: " + fmt.Sprint(Check([]float32{}, 0)) + "\n\nSeveral at once.\n\n")
	for _, c := range []struct {
		vectors [][]float32
		n, dims int
	}{{nil, 0, 0}, {nil, 1, 0}, {[][]float32{{1, 2}}, 1, 0}, {[][]float32{{1, 2}, {1}}, 2, 0}, {[][]float32{{1, 2}, {1, 3}}, 2, 2}, {[][]float32{{1, 2}}, 1, 3}, {[][]float32{{1}, {0}}, 2, 0}, {[][]float32{{}}, 1, 0}} {
		fmt.Fprintf(&b, "%v, %d wanted of %d dimensions: %v\n", c.vectors, c.n, c.dims, CheckAll(c.vectors, c.n, c.dims))
	}
	golden.Compare(t, "fused.golden", b.String())
}

// answers is an [http.RoundTripper] that answers by a script and tells of each request.
type answers struct {
	b     *strings.Builder
	begun time.Time
	list  []string // "status body", "status Retry-After=n body", "error text", "hang", or "broken"; the last one again
	n     int
	open  int // bodies that were not closed
}

// A counted body tells whether it was closed.
type counted struct {
	io.Reader
	open *int
}

func (c counted) Close() error { *c.open--; return nil }

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(a.b, "   after %v: %s %s %v %s\n", time.Since(a.begun).Truncate(200*time.Millisecond), r.Method, r.URL, r.Header, text.Line(string(body), 200))
	a.begun = time.Now()
	answer := a.list[min(a.n, len(a.list)-1)]
	a.n++
	kind, rest, _ := strings.Cut(answer, " ")
	resp := &http.Response{Header: make(http.Header), Request: r}
	if value, ok := strings.CutPrefix(rest, "Retry-After="); ok {
		value, rest, _ = strings.Cut(value, " ")
		resp.Header.Set("Retry-After", value)
	}
	switch kind {
	case "error":
		return nil, errors.New(rest)
	case "hang":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case "broken":
		a.open++
		resp.StatusCode, resp.Body = 200, counted{io.MultiReader(strings.NewReader("{"), brokenReader{}), &a.open}
		return resp, nil
	case "endless":
		rest = `{"embeddings":[[1,2]]` + strings.Repeat(" ", maxAnswer-len(`{"embeddings":[[1,2]]}`)) + strings.Repeat(" ", len(rest)) + "}"
		kind = "200"
	}
	_, _ = fmt.Sscan(kind, &resp.StatusCode)
	resp.Status = kind + " " + http.StatusText(resp.StatusCode)
	a.open++
	resp.Body = counted{strings.NewReader(rest), &a.open}
	return resp, nil
}

var errGaveUp = errors.New("the host gave up")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// testdata/http.golden has what is asked of services that embed, and what is made of their answers.
func TestHTTPEmbedderGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What is asked of services that embed, and what is made of their answers. Times are those since the request before,\nin steps of 200 ms, since a part of them is by chance.\n\n")
	b.WriteString("Options that are none:\n")
	for _, o := range []HTTPEmbedderOptions{{}, {URL: "x"}, {URL: "ftp://x.test", Model: "m"}, {URL: "http://", Model: "m"}, {URL: "http://[", Model: "m"}, {URL: "http://x.test"}, {URL: "https://x.test", Model: "m"}, {URL: "http://x.test", Model: "m", Dimensions: 3, TextPrefix: "p: "}} {
		e, err := NewOllamaEmbedder(o)
		fmt.Fprintf(&b, "%s: %v", golden.Text(o), err)
		if err == nil {
			fmt.Fprintf(&b, ", %q, %d", e.Model(), e.Dimensions())
		}
		b.WriteString("\n")
	}
	type asking struct {
		shows   string
		opts    HTTPEmbedderOptions
		openAI  bool
		texts   []string // nil for a query
		within  time.Duration
		answers []string
	}
	two := `200 {"embeddings":[[1,2],[3,4]]}`
	one := `200 {"embeddings":[[1,2]]}`
	long := HTTPEmbedderOptions{BatchSize: 2}
	var sixtyfive []string
	for i := range 65 {
		sixtyfive = append(sixtyfive, fmt.Sprint(i))
	}
	sixtyfour := `200 {"embeddings":[` + strings.Repeat("[1,2],", 63) + `[1,2]]}`
	for _, c := range []asking{
		{shows: "texts", texts: []string{"a", "b"}, answers: []string{two}},
		{shows: "no texts", texts: []string{}, answers: []string{two}},
		{shows: "a query", answers: []string{one}},
		{shows: "prefixes, dimensions and a key", opts: HTTPEmbedderOptions{Key: "k3y", Dimensions: 2, TextPrefix: "t: ", QueryPrefix: "q: "}, texts: []string{"a"}, answers: []string{one}},
		{shows: "a query's prefix", opts: HTTPEmbedderOptions{TextPrefix: "t: ", QueryPrefix: "q: "}, answers: []string{one}},
		{shows: "batches", opts: long, texts: []string{"a", "b", "c"}, answers: []string{two, one}},
		{shows: "as many as the default takes at once, and one more", texts: sixtyfive, answers: []string{sixtyfour, one}},
		{shows: "a batch size below one", opts: HTTPEmbedderOptions{BatchSize: -3}, texts: []string{"a", "b"}, answers: []string{one, one}},
		{shows: "batches of other dimensions", opts: long, texts: []string{"a", "b", "c"}, answers: []string{two, `200 {"embeddings":[[1,2,3]]}`}},
		{shows: "other dimensions than asked for", opts: HTTPEmbedderOptions{Dimensions: 3}, texts: []string{"a"}, answers: []string{one}},
		{shows: "too few", texts: []string{"a", "b"}, answers: []string{one}},
		{shows: "too many", texts: []string{"a"}, answers: []string{two}},
		{shows: "a zero", texts: []string{"a"}, answers: []string{`200 {"embeddings":[[0,0]]}`}},
		{shows: "not JSON", texts: []string{"a"}, answers: []string{`200 {"embeddings":[[1,`}},
		{shows: "another kind", texts: []string{"a"}, answers: []string{`200 {"embeddings":"x"}`}},
		{shows: "OpenAI, in any order", openAI: true, texts: []string{"a", "b"}, answers: []string{`200 {"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}`}},
		{shows: "OpenAI, without indexes", openAI: true, texts: []string{"a", "b"}, answers: []string{`200 {"data":[{"embedding":[3,4]},{"embedding":[1,2]}]}`}},
		{shows: "OpenAI, an index twice", openAI: true, texts: []string{"a", "b"}, answers: []string{`200 {"data":[{"index":0,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}`}},
		{shows: "OpenAI, an index too large", openAI: true, texts: []string{"a"}, answers: []string{`200 {"data":[{"index":1,"embedding":[3,4]}]}`}},
		{shows: "OpenAI, an index below 0", openAI: true, texts: []string{"a"}, answers: []string{`200 {"data":[{"index":-1,"embedding":[3,4]}]}`}},
		{shows: "OpenAI, not JSON", openAI: true, texts: []string{"a"}, answers: []string{`200 x`}},
		{shows: "refused", texts: []string{"a"}, answers: []string{"400 no such model"}},
		{shows: "refused, with the key in the answer", opts: HTTPEmbedderOptions{Key: "k3y"}, texts: []string{"a"}, answers: []string{"401 the key k3y is wrong: k3y"}},
		{shows: "refused, at length", texts: []string{"a"}, answers: []string{"499 " + strings.Repeat("x", 600)}},
		{shows: "busy for a while", texts: []string{"a"}, answers: []string{"429 slow", "503 busy", "500 oops", one}},
		{shows: "busy for too long", texts: []string{"a"}, answers: []string{"503 busy"}},
		{shows: "no retries", opts: HTTPEmbedderOptions{Retries: -1}, texts: []string{"a"}, answers: []string{"503 busy"}},
		{shows: "one retry", opts: HTTPEmbedderOptions{Retries: 1}, texts: []string{"a"}, answers: []string{"503 busy"}},
		{shows: "many retries", opts: HTTPEmbedderOptions{Retries: 9}, texts: []string{"a"}, answers: []string{"503 busy"}},
		{shows: "told when to come back", texts: []string{"a"}, answers: []string{"429 Retry-After=3 slow", "429 Retry-After=-3 slow", "429 Retry-After=99999 slow", one}},
		{shows: "no connection", texts: []string{"a"}, answers: []string{"error no route", one}},
		{shows: "an answer that breaks off", texts: []string{"a"}, answers: []string{"broken", one}},
		{shows: "an answer that takes too long", opts: HTTPEmbedderOptions{Retries: 1}, texts: []string{"a"}, answers: []string{"hang"}},
		{shows: "an answer that takes too long for the host", opts: HTTPEmbedderOptions{Retries: 1, Timeout: time.Second}, texts: []string{"a"}, answers: []string{"hang", one}},
		{shows: "no time for another try", within: 300 * time.Millisecond, texts: []string{"a"}, answers: []string{"429 Retry-After=3 slow"}},
		{shows: "time for one try only", within: 5 * time.Second, texts: []string{"a"}, answers: []string{"429 Retry-After=3 slow"}},
		{shows: "cancelled while it waits", within: -time.Second, texts: []string{"a"}, answers: []string{"429 Retry-After=3 slow"}},
		{shows: "cancelled while it asks", within: -time.Second, texts: []string{"a"}, answers: []string{"hang"}},
		{shows: "cancelled, with a key", opts: HTTPEmbedderOptions{Key: "k3y"}, within: -time.Second, texts: []string{"a"}, answers: []string{"hang"}},
		{shows: "as long as may be", texts: []string{"a"}, answers: []string{"endless"}},
		{shows: "longer", texts: []string{"a"}, answers: []string{"endless x"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			fmt.Fprintf(&b, "\n== %s\n", c.shows)
			script := &answers{b: &b, begun: time.Now(), list: c.answers}
			c.opts.URL, c.opts.Model, c.opts.Client = "https://secret@x.test/v1/", "m", &http.Client{Transport: script}
			make_ := NewOllamaEmbedder
			if c.openAI {
				make_ = NewOpenAIEmbedder
			}
			e, err := make_(c.opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			switch {
			case c.within > 0:
				var end context.CancelFunc
				ctx, end = context.WithTimeout(ctx, c.within)
				defer end()
			case c.within < 0:
				time.AfterFunc(-c.within, func() { cancel(errGaveUp) })
			}
			if c.texts == nil {
				v, err := e.EmbedQuery(ctx, "what?")
				fmt.Fprintf(&b, "   %v %v\n", v, err)
				return
			}
			vectors, err := e.Embed(ctx, c.texts)
			if script.open != 0 {
				fmt.Fprintf(&b, "   %d bodies are open\n", script.open)
			}
			if errors.Is(err, errGaveUp) {
				b.WriteString("   the cause is known:")
			}
			if len(vectors) > 9 {
				fmt.Fprintf(&b, "   %d vectors, ", len(vectors))
				vectors = vectors[:1]
			}
			fmt.Fprintf(&b, "   %v %v\n", vectors, err)
		})
	}
	golden.Compare(t, "http.golden", b.String())
}

// testdata/cache.golden has a story of vectors that are kept between runs.
func TestCacheGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("A story of vectors that are kept between runs: what is saved (magic, fingerprint, when in step, dimensions, number; then key, day, elements), and what is loaded.\n\n")
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Store)
		log := new(mcptest.Log)
		logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		names := map[Key]string{}
		key := func(name string) Key {
			k := KeyOf("m", name)
			names[k] = name
			return k
		}
		print := [32]byte{7}
		data := func() {
			d := doc.Data
			if len(d) < headerBytes {
				fmt.Fprintf(&b, "   saved: %q\n", d)
				return
			}
			var h vectorHeader
			h.decode(d)
			fmt.Fprintf(&b, "   saved: %s %x… %d %d %d\n", h.Magic, h.Print[:2], h.Synced, h.Dims, h.Count)
			for rest := d[headerBytes:]; len(rest) > 0; {
				size := cacheKeyBytes + 4*int(h.Dims)
				k := Key(rest)
				fmt.Fprintf(&b, "      %s %d %s\n", names[k], binary.LittleEndian.Uint32(rest[16:]), hex.EncodeToString(rest[20:size]))
				rest = rest[size:]
			}
		}
		has := func(c *Cache) {
			var list []string
			for _, name := range slices.Sorted(maps.Values(names)) {
				list = append(list, fmt.Sprintf("%s %v", name, c.Vector(KeyOf("m", name))))
			}
			fmt.Fprintf(&b, "   has %d: %s; fresh %v, of another fingerprint %v\n", c.Len(), strings.Join(list, ", "), c.Fresh(print), c.Fresh([32]byte{8}))
			if lines := log.String(); lines != "" {
				fmt.Fprintf(&b, "   %s", strings.ReplaceAll(lines, "\n", "\n   "))
				*log = mcptest.Log{}
				b.WriteString("\n")
			}
		}
		save := func(c *Cache, inStep bool, wanted ...string) {
			var keys []Key
			for _, name := range wanted {
				keys = append(keys, key(name))
			}
			before := doc.Data
			err := c.Save(keys, print, inStep)
			fmt.Fprintf(&b, "save %v, in step %v: %v\n", wanted, inStep, err)
			if len(doc.Data) == len(before) && (len(before) == 0 || &doc.Data[0] == &before[0]) { // not even the same again
				b.WriteString("   nothing written\n")
				return
			}
			data()
		}
		c := LoadCache(doc, "m", logger)
		has(c)
		save(c, false)
		c.Put(key("b"), []float32{1, 2})
		c.Put(key("a"), []float32{3, 4})
		c.Put(key("c"), []float32{5, 6})
		c.Put(key("odd"), []float32{1, 2, 3})
		has(c)
		save(c, false, "b", "a", "b", "never")
		save(c, false, "b", "a")
		save(c, true, "b", "a")
		save(c, true, "b", "a")
		b.WriteString("another run\n")
		c = LoadCache(doc, "m", logger)
		has(c)
		save(c, true, "b", "a")
		time.Sleep(24*time.Hour - time.Second)
		has(c)
		time.Sleep(time.Second)
		b.WriteString("a day later\n")
		has(c)
		save(c, false, "b")
		has(LoadCache(doc, "m", logger))
		b.WriteString("30 days later\n")
		time.Sleep(29 * 24 * time.Hour)
		c = LoadCache(doc, "m", logger)
		save(c, true, "b")
		b.WriteString("31 days later\n")
		time.Sleep(24 * time.Hour)
		c = LoadCache(doc, "m", logger)
		save(c, true, "b")
		b.WriteString("a clock that was ahead\n")
		future := bytes.Clone(doc.Data)
		binary.LittleEndian.PutUint32(future[headerBytes+16:], 99999999)
		binary.LittleEndian.PutUint64(future[40:], uint64(time.Now().Add(time.Hour).Unix()))
		doc.Data = future
		c = LoadCache(doc, "m", logger)
		has(c)
		save(c, false, "b")
		c.Put(key("d"), []float32{7, 8})
		save(c, false, "d")
		b.WriteString("a limit of two vectors\n")
		c.limit = headerBytes + 2*(cacheKeyBytes+8)
		c.Put(key("e"), []float32{9, 9})
		save(c, false, "e", "d", "b")
		has(c)
		c.limit--
		c.Put(key("e"), []float32{9, 8})
		save(c, false, "e", "d", "b")
		has(c)
		b.WriteString("elements that are no numbers\n")
		bad := bytes.Clone(doc.Data)
		binary.LittleEndian.PutUint32(bad[headerBytes+cacheKeyBytes:], math.Float32bits(float32(math.NaN())))
		doc.Data = bad
		c = LoadCache(doc, "m", logger)
		has(c)
		has(c)
		for _, broken := range []struct {
			shows string
			data  []byte
		}{{"nothing", []byte{}}, {"short", bad[:headerBytes-1]}, {"only a header", headerOf(0, 0)}, {"vectors of 0 dimensions", headerOf(0, 1)}, {"too many dimensions", headerOf(maxCacheDims+1, 0)}, {"as many dimensions as may be", headerOf(maxCacheDims, 0)}, {"a part of a vector", bad[:len(bad)-1]}, {"another version", append([]byte("mcpvec01"), bad[8:]...)}} {
			fmt.Fprintf(&b, "%s\n", broken.shows)
			doc.Data = broken.data
			has(LoadCache(doc, "m", logger))
		}
		doc.Err = errors.New("no disk")
		b.WriteString("a store that fails\n")
		c = LoadCache(doc, "m", logger)
		has(c)
		c.Put(key("f"), []float32{1, 1})
		save(c, true, "f")
		doc.Err = nil
		b.WriteString("and works again\n")
		save(c, true, "f")
		b.WriteString("no store, no log\n")
		c = LoadCache(nil, "m", nil)
		c.Put(key("f"), []float32{1, 1})
		save(c, true, "f")
		has(c)
	})
	golden.Compare(t, "cache.golden", b.String())
}

func headerOf(dims, count uint32) []byte {
	data := make([]byte, headerBytes)
	(&vectorHeader{Magic: vectorMagic, Dims: dims, Count: count}).encode(data)
	return data
}
