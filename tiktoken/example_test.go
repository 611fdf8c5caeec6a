package tiktoken_test

import (
	"fmt"
	"log"

	"github.com/mcphybrid/mcphybrid/tiktoken"
)

func ExampleNew() {
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(counter.CountTokens("antidisestablishmentarianism"))

	_, err = tiktoken.New("p50k")
	fmt.Println(err)
	// Output:
	// 6
	// tiktoken: unknown encoding "p50k": must be "o200k_base" or "cl100k_base"
}
