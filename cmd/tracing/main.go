// Command tracing is the tracing backend: agent, collector, query service or all of them, depending
// on its configuration.
package main

import (
	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"
)

func main() {
	app.Main(tracing.Components(), tracing.Presets()...)
}
