package main

import (
	"flag"
	"log"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var long = flag.Duration("replicas", 0, "how long TestReplicas goes on, with 200 conversations, a replica killed every 20 s and the store away for 10 s")

func TestMain(m *testing.M) {
	if err := role(os.Args[1:]); err != errNoRole {
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

// The loss of each replica, and of the store, loses and mixes nothing.
func TestReplicas(t *testing.T) {
	s := settings{replicas: 3, conversations: 10, think: 20 * time.Millisecond, away: 500 * time.Millisecond, pause: 100 * time.Millisecond}
	if *long > 0 {
		s = settings{replicas: 3, conversations: 200, think: time.Second, away: 10 * time.Second, time: *long, pause: 20 * time.Second}
	}
	r, err := play(t.Context(), s, t.Logf)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, r.kills, 3)
	assert.Greater(t, r.turns, 5*s.conversations, "once at the beginning, and after each loss")
	t.Log(r)
}
