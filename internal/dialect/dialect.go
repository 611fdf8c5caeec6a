// Package dialect converts JSON schemas for model providers.
//
// A provider refuses a whole request because of one unknown keyword or a union at
// the root of a schema. [Convert] returns a schema that the provider accepts and
// lists what was lost. It works on the JSON text, so members keep their order and
// numbers keep their digits.
package dialect

import (
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Dialect describes which part of JSON Schema, draft 2020-12, a provider accepts.
// Every provider refuses a root that is not of type object or that has anyOf, oneOf
// or allOf.
type Dialect struct {
	notAtRoot   []string                  // further keywords refused at the root
	onlyWith    func(keyword string) bool // reports whether one is known; nil takes all; if set, references are replaced
	shortNames  bool                      // the parameters must be named [A-Za-z0-9_.-]{1,64}
	noLook      bool                      // regular expressions have no lookaround
	needItems   bool                      // an array must have items
	needObjects bool                      // the root must have properties
}

// OpenAI and Anthropic follow the error messages of their APIs. OpenAI: "schema
// must have type 'object' and not have
// 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level", "array schema
// missing items", "object schema missing properties", "regex lookaround is not
// supported". Anthropic: "input_schema does not support oneOf, allOf, or anyOf at
// the top level", "It must match JSON Schema draft 2020-12", "Property keys should
// match pattern '^[a-zA-Z0-9_.-]{1,64}$'", which concerns only the root.
var (
	OpenAI    = Dialect{notAtRoot: []string{"enum", "const", "not"}, noLook: true, needItems: true, needObjects: true}
	Anthropic = Dialect{shortNames: true}

	// Bedrock passes schemas on to models of many vendors: this is what all of these take.
	Bedrock = Dialect{notAtRoot: []string{"enum", "const", "not"}, shortNames: true, noLook: true, needItems: true, needObjects: true}
)

const (
	// maxReplaced bounds the bytes of definitions that replace references. Nested
	// definitions could otherwise grow exponentially.
	maxReplaced = 256 << 10

	// maxLosses and maxPlaceLength bound the losses of a hostile schema.
	maxLosses      = 100
	maxPlaceLength = 200
)

// An operand is the kind of value that a keyword requires.
type operand int

const (
	anything      operand = iota // also for unknown keywords
	outdated                     // a keyword of older drafts only
	aSchema                      // including true and false
	aSchemaOrBool                // true and false stay as they are
	someSchemas                  // a list, not empty
	namedSchemas                 // an object
	aType                        // the name of a type, or several
	aString
	aPattern     // a regular expression
	someStrings  // a list
	namedStrings // an object of lists of strings
	aNumber
	aMultiple // a number above 0
	aCount    // an integer of at least 0
	aBool
	someValues   // a list
	alternatives // a list, not empty
)

var keywords = map[string]operand{
	"items": aSchema, "contains": aSchema, "propertyNames": aSchema, "not": aSchema,
	"if": aSchema, "then": aSchema, "else": aSchema, "contentSchema": aSchema,
	"additionalProperties": aSchemaOrBool, "unevaluatedProperties": aSchemaOrBool, "unevaluatedItems": aSchemaOrBool,
	"anyOf": someSchemas, "oneOf": someSchemas, "allOf": someSchemas, "prefixItems": someSchemas,
	"properties": namedSchemas, "patternProperties": namedSchemas, "dependentSchemas": namedSchemas,
	"$defs": namedSchemas, "definitions": namedSchemas,
	"type": aType, "pattern": aPattern, "required": someStrings, "dependentRequired": namedStrings,
	"title": aString, "description": aString, "format": aString, "$comment": aString, "$id": aString,
	"$ref": aString, "$anchor": aString, "$dynamicRef": aString, "$dynamicAnchor": aString,
	"contentEncoding": aString, "contentMediaType": aString,
	"minimum": aNumber, "maximum": aNumber, "exclusiveMinimum": aNumber, "exclusiveMaximum": aNumber, "multipleOf": aMultiple,
	"minLength": aCount, "maxLength": aCount, "minItems": aCount, "maxItems": aCount,
	"minProperties": aCount, "maxProperties": aCount, "minContains": aCount, "maxContains": aCount,
	"uniqueItems": aBool, "deprecated": aBool, "readOnly": aBool, "writeOnly": aBool,
	"enum": alternatives, "examples": someValues, "const": anything,
	"dependencies": outdated, "$recursiveRef": outdated, "$recursiveAnchor": outdated, "$vocabulary": outdated,
}

var schemaTypes = []string{"object", "string", "number", "integer", "boolean", "array", "null"}

func isShortName(name string) bool {
	return text.IsSafeName(strings.ReplaceAll(name, ".", "_"))
}
