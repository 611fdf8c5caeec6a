// Replicas serves conversations by several processes that share a store, kills them one
// after the other, and the store, and checks that no conversation notices.
//
//	go -C examples/replicas run .
//
// Each replica is a process with a Manager. Each turn goes to the next one, in turn, as a
// load balancer would send it, and some go to two at once. The model is a script: it looks
// for the tool that the question names and calls it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"
)

// settings say what play plays.
type settings struct {
	replicas      int
	conversations int
	think         time.Duration // between an answer and the next question
	away          time.Duration // how long the store is away
	time          time.Duration // how long to go on killing; each dies at least once
	pause         time.Duration // between kills
}

func main() {
	if err := role(os.Args[1:]); err != errNoRole {
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	var s settings
	flag.IntVar(&s.replicas, "replicas", 3, "number of replicas")
	flag.IntVar(&s.conversations, "conversations", 20, "number of conversations")
	flag.DurationVar(&s.think, "think", 100*time.Millisecond, "pause between an answer and the next question")
	flag.DurationVar(&s.away, "away", 10*time.Second, "how long the store is away")
	flag.DurationVar(&s.time, "time", 0, "how long to go on; each replica and the store die at least once")
	flag.DurationVar(&s.pause, "pause", time.Second, "pause between kills")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := play(ctx, s, log.Printf)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r)
}
