package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
)

func sum(numbers []float64) float64 {
	total := 0.0
	for _, x := range numbers {
		total += x
	}
	return total
}

func cents(amount float64) float64 { return math.Round(amount*100) / 100 }

func isPrime(n int64) bool {
	return big.NewInt(n).ProbablyPrime(0) // is exact up to 64 bits
}

func primeFactors(n int64) []int64 {
	var factors []int64
	for p := int64(2); p*p <= n; p += 1 + p&1 { // 2, 3, 5, 7, 9, ...
		for n%p == 0 {
			factors = append(factors, p)
			n /= p
		}
	}
	if n > 1 {
		factors = append(factors, n)
	}
	return factors
}

func mean(numbers []float64, kind string) (float64, error) {
	n := float64(len(numbers))
	if kind == "arithmetic" {
		return sum(numbers) / n, nil
	}
	logs, reciprocals := 0.0, 0.0
	for _, x := range numbers {
		if x <= 0 {
			return 0, fmt.Errorf("the %s mean takes positive numbers only", kind)
		}
		logs += math.Log(x)
		reciprocals += 1 / x
	}
	if kind == "geometric" {
		return math.Exp(logs / n), nil
	}
	return n / reciprocals, nil
}

func variance(numbers []float64, population bool) (float64, error) {
	n := float64(len(numbers))
	average := sum(numbers) / n
	squares := 0.0
	for _, x := range numbers {
		squares += (x - average) * (x - average)
	}
	if population {
		return squares / n, nil
	}
	if n < 2 {
		return 0, errors.New("a sample needs two numbers at least")
	}
	return squares / (n - 1), nil
}

func percentile(numbers []float64, percent float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	position := percent / 100 * float64(len(sorted)-1)
	below := int(position)
	if below == len(sorted)-1 {
		return sorted[below]
	}
	fraction := position - float64(below)
	return sorted[below]*(1-fraction) + sorted[below+1]*fraction
}

type description struct {
	Count             int     `json:"count"`
	Sum               float64 `json:"sum"`
	Min               float64 `json:"min"`
	LowerQuartile     float64 `json:"lower_quartile"`
	Median            float64 `json:"median"`
	UpperQuartile     float64 `json:"upper_quartile"`
	Max               float64 `json:"max"`
	Mean              float64 `json:"mean"`
	StandardDeviation float64 `json:"standard_deviation"`
}

func describe(numbers []float64) description {
	v, _ := variance(numbers, len(numbers) == 1)
	at := func(percent float64) float64 { return tidy(percentile(numbers, percent)) }
	total := sum(numbers)
	return description{
		len(numbers), tidy(total), at(0), at(25), at(50), at(75), at(100),
		tidy(total / float64(len(numbers))), tidy(math.Sqrt(v)),
	}
}

type line struct {
	Slope       float64   `json:"slope"`
	Intercept   float64   `json:"intercept"`
	RSquared    float64   `json:"r_squared"`
	Predictions []float64 `json:"predictions,omitempty"`
}

func regression(x, y, predict []float64) (any, error) {
	if len(x) != len(y) {
		return nil, fmt.Errorf("there are %d values of x, but %d of y", len(x), len(y))
	}
	n := float64(len(x))
	meanX, meanY := sum(x)/n, sum(y)/n
	var xx, xy, yy float64
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xx += dx * dx
		xy += dx * dy
		yy += dy * dy
	}
	if xx == 0 {
		return nil, errors.New("all values of x are equal")
	}
	slope := xy / xx
	intercept := meanY - slope*meanX
	fit := line{tidy(slope), tidy(intercept), 1, nil}
	if yy != 0 {
		fit.RSquared = tidy(xy * xy / (xx * yy))
	}
	for _, x := range predict {
		fit.Predictions = append(fit.Predictions, tidy(slope*x+intercept))
	}
	return fit, nil
}

func quadraticRoots(a, b, c float64) (any, error) {
	if a == 0 {
		return nil, errors.New("the equation is not quadratic: a is zero")
	}
	type solution struct {
		Discriminant float64  `json:"discriminant"`
		Roots        []string `json:"roots"`
	}
	format := func(x float64) string { return strconv.FormatFloat(tidy(x)+0, 'g', -1, 64) } // -0+0 is 0
	d := b*b - 4*a*c
	if d < 0 {
		re, im := -b/(2*a), math.Abs(math.Sqrt(-d)/(2*a))
		return solution{tidy(d), []string{
			fmt.Sprintf("%s-%si", format(re), format(im)),
			fmt.Sprintf("%s+%si", format(re), format(im)),
		}}, nil
	}
	// Add numbers of the same sign only, for subtraction would lose digits.
	q := -(b + math.Copysign(math.Sqrt(d), b)) / 2
	roots := []float64{q / a, q / a}
	if q != 0 {
		roots[1] = c / q
	}
	slices.SortFunc(roots, cmp.Compare[float64])
	return solution{tidy(d), []string{format(roots[0]), format(roots[1])}}, nil
}

func multiply(a, b [][]float64) (any, error) {
	if err := errors.Join(checkShape(a, len(b)), checkShape(b, len(b[0]))); err != nil {
		return nil, err
	}
	product := make([][]float64, len(a))
	for i, row := range a {
		product[i] = make([]float64, len(b[0]))
		for j := range product[i] {
			for k, x := range row {
				product[i][j] += x * b[k][j]
			}
		}
		tidyAll(product[i])
	}
	return product, nil
}

func checkShape(m [][]float64, columns int) error {
	for i, row := range m {
		if len(row) != columns {
			return fmt.Errorf("row %d has %d columns instead of %d", i+1, len(row), columns)
		}
	}
	return nil
}

func determinant(m [][]float64) (any, error) {
	if err := checkShape(m, len(m)); err != nil {
		return nil, err
	}
	det, _ := eliminate(exact(m)).Float64()
	return det, nil
}

func invert(m [][]float64) (any, error) {
	if err := checkShape(m, len(m)); err != nil {
		return nil, err
	}
	augmented := exact(m)
	for i := range augmented {
		for j := range augmented {
			unit := new(big.Rat)
			if i == j {
				unit.SetInt64(1)
			}
			augmented[i] = append(augmented[i], unit)
		}
	}
	if eliminate(augmented).Sign() == 0 {
		return nil, errors.New("the matrix is singular")
	}
	inverse := make([][]float64, len(m))
	for i, row := range augmented {
		inverse[i] = floats(row[len(m):])
	}
	return inverse, nil
}

func solve(m [][]float64, constants []float64) (any, error) {
	if err := checkShape(m, len(m)); err != nil {
		return nil, err
	}
	if len(constants) != len(m) {
		return nil, fmt.Errorf("there are %d equations, but %d constants", len(m), len(constants))
	}
	augmented := make([][]float64, len(m))
	for i, row := range m {
		augmented[i] = append(slices.Clone(row), constants[i])
	}
	system := exact(augmented)
	if eliminate(system).Sign() == 0 {
		return nil, errors.New("the system has no unique solution")
	}
	var solution []float64
	for _, row := range system {
		solution = append(solution, floats(row[len(m):])...)
	}
	return solution, nil
}

// exact converts decimal fractions, of which floats are approximations only,
// to rational numbers.
func exact(m [][]float64) [][]*big.Rat {
	rows := make([][]*big.Rat, len(m))
	for i, row := range m {
		for _, x := range row {
			r, _ := new(big.Rat).SetString(strconv.FormatFloat(x, 'g', -1, 64)) // parses any finite number
			rows[i] = append(rows[i], r)
		}
	}
	return rows
}

func floats(row []*big.Rat) []float64 {
	list := make([]float64, len(row))
	for i, x := range row {
		list[i], _ = x.Float64()
	}
	return list
}

// eliminate turns the left square of m into the identity matrix by
// Gauss-Jordan elimination and returns the determinant it had. It gives up if
// that is zero.
func eliminate(m [][]*big.Rat) *big.Rat {
	det := big.NewRat(1, 1)
	for i := range m {
		pivot := slices.IndexFunc(m[i:], func(row []*big.Rat) bool { return row[i].Sign() != 0 })
		if pivot < 0 {
			return new(big.Rat)
		}
		if pivot > 0 {
			m[i], m[i+pivot] = m[i+pivot], m[i]
			det.Neg(det)
		}
		det.Mul(det, m[i][i])
		scale := new(big.Rat).Inv(m[i][i])
		for j := range m[i] {
			m[i][j].Mul(m[i][j], scale)
		}
		for k := range m {
			if k == i || m[k][i].Sign() == 0 {
				continue
			}
			factor := new(big.Rat).Set(m[k][i])
			for j := range m[k] {
				m[k][j].Sub(m[k][j], new(big.Rat).Mul(factor, m[i][j]))
			}
		}
	}
	return det
}
