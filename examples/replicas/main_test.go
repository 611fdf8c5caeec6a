package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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

func TestShow(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show(t.Context(), &out, t.TempDir()))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 10, out.String())
	assert.Equal(t, []string{
		"replica 1: job_000 did: job_000 for Alice",
		"replica 2: job_010 did: job_010 for Alice",
		"replica 3: job_020 did: job_020 for Alice",
		"replica 1: job_030 did: job_030 for Alice",
		"replica 1 is lost",
		"replica 2: job_040 did: job_040 for Alice",
		"replica 3: job_050 did: job_050 for Alice",
	}, lines[:7])
	_, by, _ := strings.Cut(lines[7], " tells ")
	assert.Equal(t, "replica 3, asked at once, tells "+by, lines[8])
	assert.Equal(t, "the store has 7 messages", lines[9])
}

// serverVariable names the URL of a PostgreSQL server for the tests.
const serverVariable = "MCPHYBRID_POSTGRES"

// The loss of each replica, and of the store, loses and mixes nothing, and no tool is called
// twice for a message that two replicas got.
func TestReplicas(t *testing.T) {
	t.Run("NATS", func(t *testing.T) { testReplicas(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) {
		server := os.Getenv(serverVariable)
		if server == "" {
			t.Skipf("%s is not set: not tested with PostgreSQL", serverVariable)
		}
		schema := fmt.Sprintf("replicas_%d", os.Getpid())
		t.Setenv(schemaVariable, schema)
		testReplicas(t, server)
		conn, err := pgx.Connect(t.Context(), server)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "DROP SCHEMA "+schema+" CASCADE")
		require.NoError(t, err)
		require.NoError(t, conn.Close(t.Context()))
	})
}

func testReplicas(t *testing.T, server string) {
	s := settings{replicas: 3, conversations: 10, think: 20 * time.Millisecond, away: 500 * time.Millisecond, pause: 100 * time.Millisecond}
	if *long > 0 {
		s = settings{replicas: 3, conversations: 200, think: time.Second, away: 20 * time.Second, time: *long, pause: 20 * time.Second}
	}
	s.server = server
	r, err := play(t.Context(), s, t.Logf)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, r.kills, 3)
	assert.Greater(t, r.turns, 5*s.conversations, "once at the beginning, and after each loss")
	if *long > 0 && server == "" { // a process that is cut off from PostgreSQL finds out later
		assert.Less(t, r.after[len(r.after)*99/100], leaseTime, "of 100 turns after the store has come back, 99 don't wait until leases end")
	}
	t.Log(r)
}
