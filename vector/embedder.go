package vector

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// An Embedder turns texts into vectors. The closer two texts are in meaning, the
// smaller the angle between their vectors. The methods are safe for concurrent
// use.
type Embedder interface {
	// Embed returns one vector for each text, in the order of texts. All have the
	// same length and none is zero.
	Embed(ctx context.Context, texts []string) ([][]float32, error)

	// EmbedQuery returns the vector of a search query, comparable with the
	// vectors of Embed.
	EmbedQuery(ctx context.Context, query string) ([]float32, error)

	// Model names the model. Vectors of different models are not comparable.
	Model() string

	// Dimensions returns the length of the vectors, or 0 if it is not known
	// before the first answer.
	Dimensions() int
}

// CheckAll returns an error unless vectors has n vectors that each pass [Check].
// If dims is 0, the first vector sets the length.
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

// Check returns an error unless v has dims elements, all are finite and one is
// not 0. A dims of 0 is an error too.
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

// Unit returns the vector of length 1 in the direction of v. Stores keep vectors
// in this form, because squares of other vectors can overflow or underflow a
// float32. It is an error if v is zero or has elements that are not finite.
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
