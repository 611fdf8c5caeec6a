package main

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	maxExact   = 1<<53 - 1 // the largest integer that survives JSON
	maxBig     = 5000      // argument of the functions that return big integers
	maxMatrix  = 10        // rows and columns
	maxDigits  = 2000      // of a number to convert
	maxFormula = 2000      // characters
)

type (
	pair     struct{ A, B float64 }
	numbers  struct{ Numbers []float64 }
	integers struct{ Numbers []int64 }
	whole    struct{ N int64 }
	nk       struct{ N, K int64 }
	matrix   struct{ Matrix [][]float64 }
)

// mathServer serves a calculator.
func mathServer() *server.MCPServer {
	s := newServer("math", "Calculates: arithmetic, number theory, statistics, linear algebra and finance.")
	list := nums("numbers", "The numbers.", required, mcp.MinItems(1))
	wholes := mcp.WithArray("numbers", mcp.Description("The whole numbers."), mcp.Required(), mcp.MinItems(1), mcp.MaxItems(1000),
		mcp.WithIntegerItems(mcp.Min(-maxExact), mcp.Max(maxExact)))

	query(s, "evaluate_expression",
		"Evaluate an arithmetic expression such as 2*(3+x)^2. Knows + - * / % ^, parentheses, the constants pi, e and phi, and functions: abs, sqrt, cbrt, exp, ln, log, log2, sin, cos, tan, asin, acos, atan, atan2, floor, ceil, round, min, max, pow and hypot. Angles are in radians.",
		func(in struct {
			Expression string
			Variables  map[string]float64
		}) (any, error) {
			x, err := evaluate(in.Expression, in.Variables)
			return tidy(x), err
		},
		str("expression", "Expression to evaluate.", required, mcp.MinLength(1), mcp.MaxLength(maxFormula)),
		mcp.WithObject("variables", mcp.Description("Values of the variables in the expression, by name."),
			mcp.AdditionalProperties(map[string]any{"type": "number"})))

	query(s, "add", "Add up a list of numbers.",
		func(in numbers) (any, error) { return tidy(sum(in.Numbers)), nil }, list)

	query(s, "subtract", "Subtract the number b from the number a.",
		func(in pair) (any, error) { return tidy(in.A - in.B), nil },
		num("a", "Number to subtract from.", required), num("b", "Number to subtract.", required))

	query(s, "multiply", "Multiply a list of numbers and return their product.",
		func(in numbers) (any, error) {
			product := 1.0
			for _, x := range in.Numbers {
				product *= x
			}
			return tidy(product), nil
		},
		list)

	query(s, "divide", "Divide one number by another. Returns the exact quotient as well as the whole quotient and the remainder.",
		func(in pair) (any, error) {
			if in.B == 0 {
				return nil, errors.New("division by zero")
			}
			return map[string]float64{
				"quotient":  tidy(in.A / in.B),
				"whole":     math.Trunc(in.A / in.B),
				"remainder": tidy(math.Mod(in.A, in.B)),
			}, nil
		},
		num("a", "Dividend.", required), num("b", "Divisor, not zero.", required))

	query(s, "power", "Raise a base to a power. Fractional exponents give roots: the exponent 0.5 is the square root.",
		func(in struct{ Base, Exponent float64 }) (any, error) {
			return tidy(math.Pow(in.Base, in.Exponent)), nil
		},
		num("base", "Number to raise.", required), num("exponent", "Power to raise it to.", required))

	query(s, "gcd", "Find the greatest common divisor of whole numbers.",
		func(in integers) (any, error) {
			gcd := new(big.Int)
			for _, n := range in.Numbers {
				gcd.GCD(nil, nil, gcd, new(big.Int).Abs(big.NewInt(n)))
			}
			return gcd.String(), nil
		},
		wholes)

	query(s, "lcm", "Find the least common multiple of whole numbers, for instance to bring fractions to a common denominator.",
		func(in integers) (any, error) {
			lcm := big.NewInt(1)
			for _, n := range in.Numbers {
				if n == 0 {
					return "0", nil
				}
				x := new(big.Int).Abs(big.NewInt(n))
				gcd := new(big.Int).GCD(nil, nil, lcm, x)
				lcm.Mul(lcm, x.Div(x, gcd))
			}
			return lcm.String(), nil
		},
		wholes)

	query(s, "is_prime", "Tell whether a whole number is a prime number.",
		func(in whole) (any, error) { return isPrime(in.N), nil },
		integer("n", "Number to test.", 0, maxExact, required))

	query(s, "prime_factors", "Factorize a whole number into its prime factors, in ascending order and repeated as often as they divide it.",
		func(in whole) (any, error) { return primeFactors(in.N), nil },
		integer("n", "Number to factorize.", 2, maxExact, required))

	query(s, "list_primes", "List the first prime numbers at or above a starting point.",
		func(in struct {
			Start int64
			Count int
		}) (any, error) {
			primes := []int64{}
			for n := in.Start; len(primes) < in.Count; n++ {
				if isPrime(n) {
					primes = append(primes, n)
				}
			}
			return primes, nil
		},
		integer("start", "Where to start looking.", 0, maxExact, mcp.DefaultNumber(2)),
		integer("count", "How many primes to list.", 1, 1000, mcp.DefaultNumber(10)))

	query(s, "factorial", "Compute the factorial n! exactly, with all its digits.",
		func(in whole) (any, error) { return new(big.Int).MulRange(1, in.N).String(), nil },
		integer("n", "Whole number to take the factorial of.", 0, maxBig, required))

	query(s, "combinations",
		"Count the ways to choose k of n things when their order does not matter, also known as the binomial coefficient. For example, a lottery that draws 6 of 49 balls has combinations(49, 6) outcomes.",
		func(in nk) (any, error) { return new(big.Int).Binomial(in.N, in.K).String(), nil },
		integer("n", "Number of things to choose from.", 0, maxBig, required),
		integer("k", "Number of things to choose.", 0, maxBig, required))

	query(s, "permutations", "Count the ways to arrange k of n things when their order matters.",
		func(in nk) (any, error) {
			if in.K > in.N {
				return "0", nil
			}
			return new(big.Int).MulRange(in.N-in.K+1, in.N).String(), nil
		},
		integer("n", "Number of things to choose from.", 0, maxBig, required),
		integer("k", "Number of things to arrange.", 0, maxBig, required))

	query(s, "describe_statistics", "Summarize a sample of numbers with count, sum, minimum, quartiles, maximum, mean and standard deviation in one go.",
		func(in numbers) (any, error) { return describe(in.Numbers), nil }, list)

	query(s, "mean", "Compute the average of a list of numbers. The geometric mean suits growth rates and the harmonic mean suits speeds.",
		func(in struct {
			Numbers []float64
			Kind    string
		}) (any, error) {
			m, err := mean(in.Numbers, in.Kind)
			return tidy(m), err
		},
		list, str("kind", "Which mean to compute.", mcp.Enum("arithmetic", "geometric", "harmonic"), mcp.DefaultString("arithmetic")))

	query(s, "median", "Find the median, the middle value of a list of numbers, which unlike the mean does not care about outliers.",
		func(in numbers) (any, error) { return tidy(percentile(in.Numbers, 50)), nil }, list)

	query(s, "standard_deviation", "Compute the standard deviation and variance of a list of numbers, by default those of a sample.",
		func(in struct {
			Numbers    []float64
			Population bool
		}) (any, error) {
			v, err := variance(in.Numbers, in.Population)
			return map[string]float64{"standard_deviation": tidy(math.Sqrt(v)), "variance": tidy(v)}, err
		},
		list, flag("population", "Whether the numbers are the entire population instead of a sample of it."))

	query(s, "percentile", "Find the value below which a given percentage of the numbers fall, for example the 95th percentile of response times. Interpolates linearly between neighbors.",
		func(in struct {
			Numbers []float64
			Percent float64
		}) (any, error) {
			return tidy(percentile(in.Numbers, in.Percent)), nil
		},
		list, num("percent", "Percentage from 0 to 100.", required, mcp.Min(0), mcp.Max(100)))

	query(s, "linear_regression",
		"Fit a straight line through points by the method of least squares. Returns slope, intercept and the coefficient of determination r², and optionally what the line predicts for more values of x, so it can extrapolate a trend.",
		func(in struct{ X, Y, Predict []float64 }) (any, error) { return regression(in.X, in.Y, in.Predict) },
		nums("x", "The x coordinates.", required, mcp.MinItems(2)),
		nums("y", "The y coordinates, as many as there are of x.", required, mcp.MinItems(2)),
		nums("predict", "Further values of x to predict y for."))

	query(s, "matrix_multiply", "Multiply two matrices. The first must have as many columns as the second has rows.",
		func(in struct{ A, B [][]float64 }) (any, error) { return multiply(in.A, in.B) },
		grid("a", "Left matrix, a list of rows."), grid("b", "Right matrix, a list of rows."))

	square := grid("matrix", "Square matrix, a list of rows.")
	query(s, "matrix_determinant", "Compute the determinant of a square matrix in exact arithmetic.",
		func(in matrix) (any, error) { return determinant(in.Matrix) }, square)

	query(s, "matrix_inverse", "Invert a square matrix. Fails if the matrix is singular, that is, if its determinant is zero.",
		func(in matrix) (any, error) { return invert(in.Matrix) }, square)

	query(s, "solve_linear_system", "Solve a system of linear equations, given its coefficients as a square matrix and its right-hand sides.",
		func(in struct {
			Matrix    [][]float64
			Constants []float64
		}) (any, error) {
			return solve(in.Matrix, in.Constants)
		},
		grid("matrix", "Coefficients, one row per equation."), nums("constants", "Right-hand sides, one per equation.", required, mcp.MinItems(1)))

	query(s, "solve_quadratic", "Solve the quadratic equation ax² + bx + c = 0. The two roots may be equal or complex.",
		func(in struct{ A, B, C float64 }) (any, error) { return quadraticRoots(in.A, in.B, in.C) },
		num("a", "Coefficient of x².", required), num("b", "Coefficient of x.", required), num("c", "Constant term.", required))

	query(s, "convert_base", "Convert a whole number of any size between numeral systems: binary, octal, decimal, hexadecimal or any other base up to 36.",
		func(in struct {
			Value    string
			From, To int
		}) (any, error) {
			n, ok := new(big.Int).SetString(strings.TrimSpace(in.Value), in.From)
			if !ok {
				return nil, fmt.Errorf("%q is not a number in base %d", in.Value, in.From)
			}
			return n.Text(in.To), nil
		},
		str("value", "Digits of the number, without a prefix such as 0x.", required, mcp.MaxLength(maxDigits)),
		integer("from", "Base of the given number.", 2, 36, mcp.DefaultNumber(10)),
		integer("to", "Base to convert to.", 2, 36, required))

	query(s, "compound_interest", "Compute what an investment or savings plan grows to with compound interest, optionally with a regular deposit at the end of each period.",
		func(in struct {
			Principal, Rate, Years, Deposit float64
			Periods                         float64
		}) (any, error) {
			n, rate := math.Round(in.Years*in.Periods), in.Rate/100/in.Periods
			growth := math.Pow(1+rate, n)
			total := in.Principal * growth
			if rate == 0 {
				total += in.Deposit * n
			} else {
				total += in.Deposit * (growth - 1) / rate
			}
			paid := in.Principal + in.Deposit*n
			return map[string]float64{"total": cents(total), "deposited": cents(paid), "interest": cents(total - paid)}, nil
		},
		num("principal", "Amount at the start.", required, mcp.Min(0)),
		num("rate", "Interest per year in percent.", required, mcp.Min(-100), mcp.Max(1000)),
		num("years", "Duration in years.", required, mcp.Min(0), mcp.Max(1000)),
		num("deposit", "Amount added at the end of each period.", mcp.DefaultNumber(0)),
		integer("periods", "How often interest is added per year, for example 12 for monthly.", 1, 366, mcp.DefaultNumber(1)))

	return s
}

// grid declares a required matrix.
func grid(name, description string) mcp.ToolOption {
	return mcp.WithArray(name, mcp.Description(description), mcp.Required(), mcp.MinItems(1), mcp.MaxItems(maxMatrix),
		mcp.Items(map[string]any{
			"type": "array", "minItems": 1, "maxItems": maxMatrix,
			"items": map[string]any{"type": "number"},
		}))
}
