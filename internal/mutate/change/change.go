// Package change switches one mutant on. Mutate writes it into the copy of the module whose
// tests it asks: each mutant there has a number, and stands in the code beside what it changes.
package change

import (
	"cmp"
	"encoding/binary"
	"os"
	"strconv"
	"sync/atomic"
)

const (
	// Active is the environment variable with the number of the mutant that is on.
	Active = "MUTATE_ACTIVE"

	// Reached is the one with the name of a file. Each mutant that the program reaches is
	// appended to it, as four bytes, the lowest first.
	Reached = "MUTATE_REACHED"

	// Most is how many mutants there may be.
	Most = 1 << 17
)

var active = func() int {
	n, err := strconv.Atoi(os.Getenv(Active))
	if err != nil {
		return -1
	}
	return n
}()

var (
	reached = func() *os.File {
		file, err := os.OpenFile(os.Getenv(Reached), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return nil
		}
		return file
	}()
	noted [Most]atomic.Bool // by the mutant's number
)

// On reports whether the mutant is the one that is on.
func On(id int) bool {
	if reached != nil && !noted[id].Swap(true) {
		reached.Write(binary.LittleEndian.AppendUint32(nil, uint32(id)))
	}
	return id == active
}

// Not returns b, or its opposite.
func Not(id int, b bool) bool { return b != On(id) }

// Less returns a < b, or a <= b.
func Less[T cmp.Ordered](id int, a, b T) bool { return Pick(id, a < b, a <= b) }

// AtMost returns a <= b, or a < b.
func AtMost[T cmp.Ordered](id int, a, b T) bool { return Pick(id, a <= b, a < b) }

// More returns a > b, or a >= b.
func More[T cmp.Ordered](id int, a, b T) bool { return Pick(id, a > b, a >= b) }

// AtLeast returns a >= b, or a > b.
func AtLeast[T cmp.Ordered](id int, a, b T) bool { return Pick(id, a >= b, a > b) }

type number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Sum returns a + b, or a - b.
func Sum[T number](id int, a, b T) T { return Pick(id, a+b, a-b) }

// Difference returns a - b, or a + b.
func Difference[T number](id int, a, b T) T { return Pick(id, a-b, a+b) }

// And returns a && b, or a || b, or one of them.
func And(or, left, right int, a bool, b func() bool) bool {
	switch {
	case On(or):
		return a || b()
	case On(left):
		return a
	case On(right):
		return b()
	}
	return a && b()
}

// Or returns a || b, or a && b, or one of them.
func Or(and, left, right int, a bool, b func() bool) bool {
	switch {
	case On(and):
		return a && b()
	case On(left):
		return a
	case On(right):
		return b()
	}
	return a || b()
}

// Fail returns err, or nil.
func Fail(id int, err error) error { return Pick(id, err, nil) }

// Pick returns was, or is.
func Pick[T any](id int, was, is T) T {
	if On(id) {
		return is
	}
	return was
}

// Min returns the smaller of two, or the larger.
func Min[T cmp.Ordered](id int, a, b T) T { return Pick(id, min(a, b), max(a, b)) }

// Max returns the larger of two, or the smaller.
func Max[T cmp.Ordered](id int, a, b T) T { return Pick(id, max(a, b), min(a, b)) }
