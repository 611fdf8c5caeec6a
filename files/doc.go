// Package files reads what a host keeps in files: rules for tools, and skills. A
// program that does not import it does not link a parser of YAML.
package files
