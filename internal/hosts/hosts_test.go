package hosts

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPermits(t *testing.T) {
	t.Parallel()
	names := []string{"ops.example.com"}
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 6060} }
	for _, test := range []struct {
		host string
		at   net.Addr
		want bool
	}{
		{"localhost", nil, true}, {"LOCALHOST:6060", nil, true}, {"127.0.0.1:6060", nil, true}, {"127.1.2.3", nil, true}, {"[::1]:6060", nil, true}, {"[::1]", nil, true},
		{"ops.example.com", nil, true}, {"Ops.Example.com:443", nil, true},
		{"10.0.0.5:6060", tcp("10.0.0.5"), true}, {"[::ffff:10.0.0.5]", tcp("10.0.0.5"), true}, {"[2001:db8::1]:6060", tcp("2001:db8::1"), true},
		{"10.0.0.5", tcp("10.0.0.6"), false}, {"10.0.0.5", nil, false}, {"10.0.0.5", &net.UnixAddr{Name: "/run/s", Net: "unix"}, false},
		{"evil.example", &net.UnixAddr{Name: "/run/s", Net: "unix"}, false}, {"[fe80::1%25lo]", &net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "lo"}, true}, {"10.0.0.5", &net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.5")}, true},
		{"evil.example", tcp("127.0.0.1"), false}, {"127.evil.example", tcp("127.0.0.1"), false}, {"127.0.0.1.evil.example:6060", nil, false},
		{"localhost.evil.example", nil, false}, {"evil.ops.example.com", nil, false}, {"", nil, false}, {":6060", nil, false}, {"*", nil, false},
		{"127.0.0.1:80.evil.example", nil, false}, {"localhost:.evil.example", nil, false}, {"[::1]:evil.example", nil, false}, {"127.0.0.1:", nil, true},
		{"evil.example#127.0.0.1", nil, false}, {"evil.example:80:127.0.0.1", nil, false}, {"0.0.0.0", tcp("127.0.0.1"), false},
	} {
		r := &http.Request{Host: test.host}
		if test.at != nil {
			r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, test.at))
		}
		assert.Equal(t, test.want, Permits(r, names), "%q at %v", test.host, test.at)
	}
}

func FuzzPermits(f *testing.F) {
	f.Add("[::1%25lo]:80")
	f.Fuzz(func(t *testing.T, host string) {
		if Permits(&http.Request{Host: host}, nil) {
			assert.True(t, IsLoopback(Bare(host)))
		}
	})
}

// A name that begins like an address leads anywhere.
func TestLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"127.evil.example": false, "127.1": false, "localhost.example": false, "10.0.0.1": false, "": false,
	} {
		assert.Equal(t, want, IsLoopback(host), host)
	}
}
