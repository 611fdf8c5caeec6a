package mcphybrid

import (
	"context"
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

// checkVectors returns what is wrong with an embedder's answer for n texts. A
// dims of 0 stands for any.
func checkVectors(vectors [][]float32, n, dims int) error {
	if len(vectors) != n {
		return fmt.Errorf("%d vectors for %d texts", len(vectors), n)
	}
	for i, v := range vectors {
		if dims == 0 {
			dims = len(v)
		}
		if err := checkVector(v, dims); err != nil {
			return fmt.Errorf("vector %d: %w", i, err)
		}
	}
	return nil
}

func checkVector(v []float32, dims int) error {
	if len(v) != dims || dims == 0 {
		return fmt.Errorf("it has %d dimensions, want %d", len(v), dims)
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	switch {
	case math.IsNaN(sum) || math.IsInf(sum, 0):
		return fmt.Errorf("it has elements that are no numbers")
	case sum == 0:
		return fmt.Errorf("it is zero")
	}
	return nil
}
