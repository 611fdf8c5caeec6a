package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Large messages share room. One that finds none waits, and others do not.
func TestLargeMessagesShareRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(limits.Limits{Message: 1 << 20, Messages: 6 << 20, Read: time.Second})
		read := func(size int) (room int, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), in.limits.Read)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
			require.NoError(t, err)
			data, room, err := in.read(ctx, r)
			if err == nil {
				assert.Len(t, data, size)
			}
			return room, err
		}
		for range 3 {
			room, err := read(1 << 20)
			require.NoError(t, err)
			assert.Equal(t, 1<<20, room)
		}
		_, err := read(limits.SmallMessage)
		require.NoError(t, err)
		_, err = read(limits.SmallMessage + 1)
		full := new(limits.Error)
		require.True(t, errors.As(err, &full))
		assert.Equal(t, http.StatusServiceUnavailable, full.Status)
		time.AfterFunc(time.Second/2, func() { in.large.give(nil, 1<<20) })
		_, err = read(1 << 20)
		require.NoError(t, err)
		_, err = read(1<<20 + 1)
		require.True(t, errors.As(err, &full))
		assert.Equal(t, http.StatusRequestEntityTooLarge, full.Status)
	})
}

// A message takes the room that it says it needs. One that does not say takes as much as a
// message may have, and may not have more.
func TestRoomOfMessages(t *testing.T) {
	const most = 1 << 20
	in := newIntake(limits.Limits{Message: most, Messages: most, Read: time.Second})
	for _, test := range []struct{ length, said, room int }{
		{limits.SmallMessage, -1, 0},
		{limits.SmallMessage + 1, limits.SmallMessage + 1, limits.SmallMessage + 1},
		{limits.SmallMessage + 1, -1, most},
		{most, -1, most},
		{most + 1, -1, 0},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", test.length)))
		require.NoError(t, err)
		r.ContentLength = int64(test.said)
		data, room, err := in.read(t.Context(), r)
		in.large.give(nil, room)
		if test.length > most {
			full := new(limits.Error)
			require.ErrorAs(t, err, &full)
			assert.Equal(t, http.StatusRequestEntityTooLarge, full.Status)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, test.room, room, "%d bytes, said %d", test.length, test.said)
		assert.Len(t, data, test.length)
	}
}

// A message has its room until it is answered. One that is refused has none.
func TestRoomIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(limits.Limits{Message: 1 << 20, Messages: 1 << 20, Values: 1 << 20 / text.ValueSize, Read: time.Second})
		answered := 0
		h := in.withMessage(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			answered++
			assert.Less(t, in.decoded.free, 1<<20)
			data, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			assert.Len(t, data, int(r.ContentLength))
		}))
		send := func(message string) int {
			out := httptest.NewRecorder()
			h.ServeHTTP(out, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(message)))
			return out.Code
		}
		values := func(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }
		for range 3 {
			assert.Equal(t, http.StatusOK, send(values(in.limits.Values)))
			assert.Equal(t, http.StatusRequestEntityTooLarge, send(values(in.limits.Values+1)))
			assert.Equal(t, http.StatusOK, send(values(1000)+strings.Repeat(" ", 1<<20-2001)))
			assert.Equal(t, http.StatusRequestEntityTooLarge, send(strings.Repeat(" ", 1<<20+1)))
		}
		assert.Equal(t, 6, answered)
		for _, r := range []*room{in.large, in.decoded} {
			assert.Equal(t, 1<<20, r.free)
			assert.Empty(t, r.has)
		}
	})
}

// Small messages with many values share room too: decoded, each takes many times its bytes.
func TestManyValuesShareRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(limits.Limits{Message: 1 << 20, Messages: 20_000 * text.ValueSize, Values: 30_000, Read: time.Second})
		decode := func(values int) (size int, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), in.limits.Read)
			defer cancel()
			return in.decode(ctx, []byte("["+strings.Repeat("0,", values-1)+"0]"))
		}
		for range 3 {
			size, err := decode(3_000)
			require.NoError(t, err)
			assert.Equal(t, 3_000*text.ValueSize, size)
		}
		size, err := decode(limits.SmallDecoded / text.ValueSize)
		require.NoError(t, err, "few values wait for no room")
		assert.Zero(t, size)
		_, err = decode(3_000)
		full := new(limits.Error)
		require.True(t, errors.As(err, &full))
		assert.Equal(t, http.StatusServiceUnavailable, full.Status)
		time.AfterFunc(time.Second/2, func() { in.decoded.give(nil, 9_000*text.ValueSize) })
		size, err = decode(30_000)
		require.NoError(t, err, "a message that would take more than all room takes all")
		assert.Equal(t, in.limits.Messages, size)
		in.decoded.give(nil, size)
		_, err = decode(30_001)
		require.True(t, errors.As(err, &full))
		assert.Equal(t, http.StatusRequestEntityTooLarge, full.Status)
	})
}
