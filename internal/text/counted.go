package text

import "fmt"

// Counted returns "1 tool" or "2 tools" for the word tool. It is for words whose plural ends in s.
func Counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
