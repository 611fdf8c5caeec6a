//go:build !linux

package main

import "os"

// width returns the usual number of columns of a terminal.
func width(*os.File) int { return plainWidth }
