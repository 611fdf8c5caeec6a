package natsstore

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// packAbove is how many bytes are not worth compressing.
const packAbove = 1 << 10

// gzipped begins what gzip writes. No JSON begins so.
var gzipped = []byte{0x1f, 0x8b}

// pack returns data as it is stored: compressed if that helps, or if data could be taken
// for compressed.
func pack(data []byte) []byte {
	if len(data) <= packAbove && !bytes.HasPrefix(data, gzipped) {
		return data
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // which is a level that there is
	_, _ = w.Write(data)                            // a Buffer takes all
	_ = w.Close()
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
