//go:build before || !unix

package main

import "math"

// stored is not measured of commits without openings.
func stored([]byte, bool) float64 { return math.NaN() }

// written is not measured on other systems, nor of commits in which Options.Cache is no Store.
func written() float64 { return math.NaN() }
