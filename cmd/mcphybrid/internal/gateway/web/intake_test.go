package web

import (
	"context"
	"errors"
	"net/http"
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
