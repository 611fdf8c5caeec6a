package natsstore

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// These benchmarks are for what the doc of the package says of object stores and of the streams' compression. Messages and bytes of the
// connection don't depend on the machine. Each does the same once: run them with -benchtime 1x.

// words returns about n bytes of JSON like those of definitions of tools.
func words(r *rand.Rand, n int) []byte {
	var b bytes.Buffer
	list := strings.Fields("the a of to and issue repository returns creates list search name string type object description properties required file path user query optional default number page")
	for b.Len() < n {
		fmt.Fprintf(&b, `{"name":"%s_%s_%d","description":"`, list[r.IntN(len(list))], list[r.IntN(len(list))], r.IntN(1000))
		for range 12 {
			b.WriteString(list[r.IntN(len(list))] + " ")
		}
		fmt.Fprintf(&b, `","inputSchema":{"type":"object","properties":{"%s":{"type":"string"}}}},`, list[r.IntN(len(list))])
	}
	return b.Bytes()[:n]
}

// carried reports what n times something took of a connection since stats were before.
func carried(b *testing.B, nc *nats.Conn, before nats.Statistics, n int) {
	now := nc.Stats()
	b.ReportMetric(float64(now.OutMsgs-before.OutMsgs+now.InMsgs-before.InMsgs)/float64(n), "messages/op")
	b.ReportMetric(float64(now.OutBytes-before.OutBytes+now.InBytes-before.InBytes)/float64(n), "wire-B/op")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/op")
}

// onDisk returns how many bytes the server has in files.
func onDisk(b *testing.B, folder string) (bytes int64) {
	require.NoError(b, filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var i fs.FileInfo
			if i, err = d.Info(); err == nil {
				bytes += i.Size()
			}
		}
		return err
	}))
	return bytes
}

// BenchmarkObjectStore puts and gets parts of 50 KB as we do, and in an object store.
func BenchmarkObjectStore(b *testing.B) {
	const times = 200
	e := newEngine(b)
	ours := e.open(b, Options{}).Parts()
	nc := e.connect(b)
	js, err := jetstream.New(nc)
	require.NoError(b, err)
	objects, err := js.CreateObjectStore(b.Context(), jetstream.ObjectStoreConfig{Bucket: "objects", Compression: true})
	require.NoError(b, err)
	ways := []struct {
		name     string
		nc       *nats.Conn
		put, get func(key string, part []byte) error
	}{
		{"key-value", ours.(*parts).of.nc, ours.Put, func(key string, part []byte) error {
			got, err := ours.Get(key)
			if err == nil && !bytes.Equal(got, part) {
				err = fmt.Errorf("other bytes")
			}
			return err
		}},
		{"object-store", nc, func(key string, part []byte) error {
			_, err := objects.PutBytes(context.Background(), key, part)
			return err
		}, func(key string, part []byte) error {
			got, err := objects.GetBytes(context.Background(), key)
			if err == nil && !bytes.Equal(got, part) {
				err = fmt.Errorf("other bytes")
			}
			return err
		}},
	}
	for _, way := range ways {
		for _, what := range []string{"Put", "Get"} {
			b.Run(way.name+"/"+what, func(b *testing.B) {
				r, do := rand.New(rand.NewPCG(1, 2)), way.put
				if what == "Get" {
					do = way.get
				}
				var list [][]byte
				for range times {
					list = append(list, words(r, 50_000))
				}
				before := way.nc.Stats()
				b.ResetTimer()
				for _, part := range list {
					require.NoError(b, do(store.KeyOf(part), part))
				}
				carried(b, way.nc, before, times)
			})
		}
	}
}

// BenchmarkCompression puts 5,000 states of 3 KB compressed by us, by the stream, and not at all.
func BenchmarkCompression(b *testing.B) {
	const times = 5000
	for name, way := range map[string]struct{ ours, stream bool }{"ours": {true, false}, "stream": {false, true}, "none": {false, false}, "both": {true, true}} {
		b.Run(name, func(b *testing.B) {
			e := newEngine(b)
			nc := e.connect(b)
			js, err := jetstream.New(nc)
			require.NoError(b, err)
			kv, err := js.CreateKeyValue(b.Context(), jetstream.KeyValueConfig{Bucket: "states", Compression: way.stream})
			require.NoError(b, err)
			r := rand.New(rand.NewPCG(1, 2))
			var list [][]byte
			for range times {
				list = append(list, words(r, 3000))
			}
			before := nc.Stats()
			b.ResetTimer()
			for i, state := range list {
				if way.ours {
					state = pack(state)
				}
				_, err := kv.Put(b.Context(), fmt.Sprint(i), state)
				require.NoError(b, err)
			}
			carried(b, nc, before, times)
			b.StopTimer()
			nc.Close()
			e.stop()
			b.ReportMetric(float64(onDisk(b, e.folder))/times, "disk-B/op")
			e.start(b)
		})
	}
}

// BenchmarkPack compresses a state of 3 KB.
func BenchmarkPack(b *testing.B) {
	state := words(rand.New(rand.NewPCG(1, 2)), 3000)
	b.ReportAllocs()
	for b.Loop() {
		pack(state)
	}
}
