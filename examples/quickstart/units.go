package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A unit is related to the base unit of its dimension: x of it are
// x*factor+offset base units, or factor/x if it is reciprocal.
type unit struct {
	name, symbol   string
	factor, offset float64
	reciprocal     bool
}

// A dimension is something to measure, in units that convert to each other.
type dimension struct {
	name        string
	description string // of the tool that converts its units
	units       []unit
}

func (u unit) toBase(x float64) float64 {
	if u.reciprocal {
		return u.factor / x
	}
	return x*u.factor + u.offset
}

func (u unit) fromBase(x float64) float64 {
	if u.reciprocal {
		return u.factor / x
	}
	return (x - u.offset) / u.factor
}

func (d dimension) names() []string {
	var names []string
	for _, u := range d.units {
		names = append(names, u.name)
	}
	return names
}

var irregularPlurals = map[string]string{"feet": "foot", "inches": "inch"}

// find returns the unit with a name, singular or plural, or symbol.
func (d dimension) find(name string) (unit, bool) {
	lower := strings.ReplaceAll(strings.ToLower(name), " ", "_")
	for _, u := range d.units {
		switch u.name {
		case lower, strings.TrimSuffix(lower, "s"), irregularPlurals[lower]:
			return u, true
		}
		if u.symbol == name || u.symbol == "°"+name {
			return u, true
		}
	}
	return unit{}, false
}

func (d dimension) convert(in conversion) (any, error) {
	from, okFrom := d.find(in.From)
	to, okTo := d.find(in.To)
	if !okFrom || !okTo {
		return nil, fmt.Errorf("%s and %s are not both units of %s", in.From, in.To, d.name)
	}
	result := to.fromBase(from.toBase(in.Value))
	if math.IsNaN(result) || math.IsInf(result, 0) {
		return nil, fmt.Errorf("%s %s cannot be expressed in %s", formatNumber(in.Value), from.symbol, to.name)
	}
	if in.Decimals != nil {
		scale := math.Pow(10, float64(*in.Decimals))
		if rounded := math.Round(result*scale) / scale; !math.IsInf(rounded, 0) {
			result = rounded
		}
	}
	return fmt.Sprintf("%s %s = %s %s", formatNumber(in.Value), from.symbol, formatNumber(result), to.symbol), nil
}

// formatNumber writes x with at most 12 significant digits.
func formatNumber(x float64) string {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64)
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e15) {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

type conversion struct {
	Value    float64
	From, To string
	Decimals *int
}

type quantity struct {
	Value float64
	Unit  string
}

// unitsServer serves one tool per dimension, and some across dimensions.
func unitsServer() *server.MCPServer {
	s := newServer("units", "Converts between units of measurement.")
	value := num("value", "Number to convert.", required)
	decimals := integer("decimals", "Decimal places to round the result to.", 0, 12)
	names := make([]string, len(dimensions))
	for i, d := range dimensions {
		names[i] = d.name
		query(s, "convert_"+d.name, d.description, d.convert, value, decimals,
			str("from", "Unit of the number.", required, mcp.Enum(d.names()...)),
			str("to", "Unit to convert to.", required, mcp.Enum(d.names()...)))
	}

	query(s, "convert_units", "Convert between any two units by name or symbol, such as mi and km, when it is not clear which kind of quantity they measure.",
		func(in conversion) (any, error) {
			for _, d := range dimensions {
				_, okFrom := d.find(in.From)
				_, okTo := d.find(in.To)
				if okFrom && okTo {
					return d.convert(in)
				}
			}
			return nil, fmt.Errorf("%q and %q are not units of the same kind", in.From, in.To)
		},
		value, decimals,
		str("from", "Name or symbol of the unit of the number.", required, mcp.MinLength(1)),
		str("to", "Name or symbol of the unit to convert to.", required, mcp.MinLength(1)))

	query(s, "list_units", "List the supported units with their symbols, optionally only those for one kind of quantity.",
		func(in struct{ Dimension string }) (any, error) {
			var out strings.Builder
			for _, d := range dimensions {
				if in.Dimension != "" && in.Dimension != d.name {
					continue
				}
				fmt.Fprintf(&out, "%s:", d.name)
				for i, u := range d.units {
					if i > 0 {
						out.WriteByte(',')
					}
					fmt.Fprintf(&out, " %s (%s)", u.name, u.symbol)
				}
				out.WriteByte('\n')
			}
			return out.String(), nil
		},
		str("dimension", "Kind of quantity.", mcp.Enum(names...)))

	query(s, "compare_quantities", "Compare two quantities in different units, such as 5 feet and 1.6 meters, to see which one is larger and by how much.",
		func(in struct{ A, B quantity }) (any, error) { return compare(in.A, in.B) },
		quantityParam("a", "First quantity."), quantityParam("b", "Second quantity."))

	query(s, "format_bytes", "Format a number of bytes so that people can read it, like 1.5 GB or 1.4 GiB.",
		func(in struct {
			Bytes  float64
			Binary bool
		}) (any, error) {
			base, units := 1000.0, []string{"B", "kB", "MB", "GB", "TB", "PB"}
			if in.Binary {
				base, units = 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
			}
			i := 0
			for ; in.Bytes >= base && i < len(units)-1; i++ {
				in.Bytes /= base
			}
			return formatNumber(math.Round(in.Bytes*100)/100) + " " + units[i], nil
		},
		num("bytes", "Number of bytes.", required, mcp.Min(0)),
		flag("binary", "Whether to use powers of 1024 instead of 1000."))

	return s
}

// quantityParam declares a required number with its unit.
func quantityParam(name, description string) mcp.ToolOption {
	return func(t *mcp.Tool) {
		t.InputSchema.Required = append(t.InputSchema.Required, name)
		t.InputSchema.Properties[name] = map[string]any{
			"type":        "object",
			"description": description,
			"properties": map[string]any{
				"value": map[string]any{"type": "number", "description": "Number of units."},
				"unit":  map[string]any{"type": "string", "description": "Name or symbol of the unit.", "minLength": 1},
			},
			"required": []string{"value", "unit"},
		}
	}
}

func compare(a, b quantity) (any, error) {
	for _, d := range dimensions {
		unitA, okA := d.find(a.Unit)
		unitB, okB := d.find(b.Unit)
		if !okA || !okB {
			continue
		}
		x, y := unitA.toBase(a.Value), unitB.toBase(b.Value)
		left := fmt.Sprintf("%s %s", formatNumber(a.Value), unitA.symbol)
		right := fmt.Sprintf("%s %s", formatNumber(b.Value), unitB.symbol)
		difference := unitA.fromBase(y) - a.Value
		switch {
		case math.IsNaN(difference) || math.IsInf(difference, 0):
			return nil, fmt.Errorf("%s and %s cannot be compared", left, right)
		case math.Abs(x-y) <= 1e-12*math.Max(math.Abs(x), math.Abs(y)):
			return left + " equals " + right, nil
		case x > y:
			return fmt.Sprintf("%s is more than %s, by %s %s", left, right, formatNumber(math.Abs(difference)), unitA.symbol), nil
		}
		return fmt.Sprintf("%s is less than %s, by %s %s", left, right, formatNumber(math.Abs(difference)), unitA.symbol), nil
	}
	return nil, fmt.Errorf("%q and %q are not units of the same kind", a.Unit, b.Unit)
}
