package natsstore

import (
	"sync"
	"testing"

	"github.com/mcphybrid/mcphybrid/storetest/replicas"
)

func TestReplicas(t *testing.T) {
	var mu sync.Mutex
	engines := make(map[string]*engine)
	replicas.Run(t, func(t *testing.T, test string) replicas.Store {
		mu.Lock()
		defer mu.Unlock()
		if engines[test] == nil {
			engines[test] = newEngine(t)
		}
		return engines[test].open(t, Options{})
	})
}
