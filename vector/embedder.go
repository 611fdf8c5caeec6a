package vector

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// An Embedder turns texts into vectors that lie the closer, by their angle, the
// more alike the texts are in meaning. It may be used concurrently.
type Embedder interface {
	// Embed returns a vector for each of the texts of tools, in their order. All
	// have the same length and none is zero.
	Embed(ctx context.Context, texts []string) ([][]float32, error)

	// EmbedQuery returns the vector of what is searched for, comparable with
	// those of texts.
	EmbedQuery(ctx context.Context, query string) ([]float32, error)

	// Model names what makes the vectors: those of different models are not
	// comparable.
	Model() string

	// Dimensions is the length of the vectors, or 0 if only an answer shows it.
	Dimensions() int
}

// CheckAll returns what is wrong with an embedder's answer for n texts. A
// dims of 0 stands for any.
func CheckAll(vectors [][]float32, n, dims int) error {
	if len(vectors) != n {
		return fmt.Errorf("%d vectors for %d texts", len(vectors), n)
	}
	for i, v := range vectors {
		if dims == 0 {
			dims = len(v)
		}
		if err := Check(v, dims); err != nil {
			return fmt.Errorf("vector %d: %w", i, err)
		}
	}
	return nil
}

func Check(v []float32, dims int) error {
	if len(v) != dims || dims == 0 {
		return fmt.Errorf("it has %d dimensions, want %d", len(v), dims)
	}
	_, err := vectorLength(v)
	return err
}

// vectorLength returns the Euclidean length of v.
func vectorLength(v []float32) (float64, error) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x) // never too large for a float64
	}
	switch {
	case math.IsNaN(sum) || math.IsInf(sum, 0):
		return 0, errors.New("it has elements that are no numbers")
	case sum == 0:
		return 0, errors.New("it is zero")
	}
	return math.Sqrt(sum), nil
}

// Unit returns the vector of length 1 in the direction of v, in which
// stores keep vectors: the squares of others can be too large for a float32, or
// too small. It is an error if v is zero or has elements that are no numbers.
func Unit(v []float32) ([]float32, error) {
	length, err := vectorLength(v)
	if err != nil {
		return nil, err
	}
	unit := make([]float32, len(v))
	for i, x := range v {
		unit[i] = float32(float64(x) / length)
	}
	return unit, nil
}
