package pipeline_test

import (
	"context"
	"fmt"
	"io"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// runProgram runs a program with the given configuration and components, and stops it immediately.
func runProgram(yaml string, components ...pipeline.Factory) {
	ctx, stop := context.WithCancel(context.Background())
	stop() // a program that is stopped while it starts still answers what its receivers have accepted
	preset := app.Preset{Name: "example", YAML: []byte(yaml)}
	fmt.Println("exit code", app.Run(ctx, nil, io.Discard, io.Discard, components, preset))
}

// A program is a list of components and presets. Its main function calls [app.Main]; this example
// calls [app.Run], which does the same but does not exit:
//
//	func main() {
//		app.Main(append(tracing.Components(), newGreeterFactory()), tracing.Presets()...)
//	}
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	stop() // a real program runs until it receives a signal
	components := []pipeline.Factory{newGreeterFactory(), newPrefixerFactory(), newPrinterFactory()}
	preset := app.Preset{Name: "greetings", YAML: []byte(`
receivers: {greeter: }
processors: {prefix: {prefix: "${GREETING_PREFIX:-my/}"}}
exporters: {printer: }
service: {pipelines: {traces: {receivers: [greeter], processors: [prefix], exporters: [printer]}}}
`)}
	args := []string{"greetings", "--set", "receivers.greeter.names=[one, two]"}
	fmt.Println("exit code", app.Run(ctx, args, io.Discard, io.Discard, components, preset))
	// Output:
	// my/one
	// my/two
	// exit code 0
}
