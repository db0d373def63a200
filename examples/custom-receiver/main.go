// Command custom-receiver is the tracing backend with an additional receiver: lines.
package main

import (
	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"

	"example.com/custom-receiver/lines"
)

func main() {
	app.Main(append(tracing.Components(), lines.Factory()), tracing.Presets()...)
}
