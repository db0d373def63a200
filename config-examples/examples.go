// Package examples holds the configurations that are built into the program as presets. They are also the examples that the
// documentation shows, and a test runs each of them.
package examples

import _ "embed"

// AllInOne is the preset all-in-one.
//
//go:embed all-in-one.yaml
var AllInOne []byte
