// Command custom-receiver is the tracing backend with one more receiver: lines.
package main

import (
	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"

	"example.com/custom-receiver/lines"
)

func main() {
	pipeline.Main(append(tracing.Components(), lines.Factory()), tracing.Presets()...)
}
