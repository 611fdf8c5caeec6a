package natsstore

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"

	"github.com/mcphybrid/mcphybrid/store"
)

// packAbove is how many bytes are not worth compressing.
const packAbove = 1 << 10

// maxPacked is how many bytes a packed document, or a part, has at most: compressing may add some.
const maxPacked = store.MaxDocument + store.MaxDocument/1000

// gzipped begins what gzip writes. No JSON begins so.
var gzipped = []byte{0x1f, 0x8b}

// writers has what compresses: each has tables of 1.2 MB, which take longer to make than a state
// takes to compress.
var writers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // which is a level that there is
	return w
}}

// pack returns data as it is stored: compressed if that helps, or if data could be taken
// for compressed.
func pack(data []byte) []byte {
	if len(data) <= packAbove && !bytes.HasPrefix(data, gzipped) {
		return data
	}
	var b bytes.Buffer
	w := writers.Get().(*gzip.Writer)
	w.Reset(&b)
	_, _ = w.Write(data) // a Buffer takes all
	_ = w.Close()
	writers.Put(w)
	if b.Len() >= len(data) && !bytes.HasPrefix(data, gzipped) {
		return data
	}
	return b.Bytes()
}

// unpack is the inverse of pack. Others may have written what it gets.
func unpack(data []byte, most int) ([]byte, error) {
	if !bytes.HasPrefix(data, gzipped) {
		if len(data) > most {
			return nil, fmt.Errorf("it has %d bytes, more than %d", len(data), most)
		}
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it is not what was stored: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is not what was stored: %w", err)
	case len(out) > most:
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return out, nil
}
