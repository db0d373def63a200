package migrate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// Commands returns the command `migrate`. It checks its result with the given components. The
// presets replace the programs of Jaeger 1.
func Commands(components func() []pipeline.Factory, presets func() []app.Preset) []commands.Command {
	return []commands.Command{{
		Name: "migrate", Args: "[--from auto|otelcol|jaeger1|jaeger2] [--service NAME] [--output FILE] FILE|--env",
		Doc: "translate a configuration of the Collector, Jaeger 2 or Jaeger 1, with comments; exit code 0 if nothing is left to decide",
		Setup: func(flags *flag.FlagSet) func(context.Context, commands.Invocation) error {
			return setup(flags, &command{components: components, presets: presets})
		},
		Group:    "configuration",
		Examples: []string{"tracing migrate collector.yaml > tracing.yaml", "tracing migrate --env --output tracing.yaml"},
	}}
}

func setup(flags *flag.FlagSet, c *command) func(context.Context, commands.Invocation) error {
	flags.StringVar(&c.from, "from", string(Auto), "Format of the input: auto, otelcol, jaeger1 or jaeger2.")
	flags.BoolVar(&c.env, "env", false, "Translate the environment variables of this process as variables of Jaeger 1.")
	flags.StringVar(&c.service, "service", "", "Service of a compose file, or name of a manifest, to translate; by default all.")
	flags.StringVar(&c.output, "output", "", "File to write; by default the result is written to standard output.")
	return c.run
}

type command struct {
	from, service, output string
	env                   bool
	components            func() []pipeline.Factory
	presets               func() []app.Preset
}

func (c *command) run(_ context.Context, in commands.Invocation) error {
	from := From(c.from)
	if from != Auto && names[from] == "" {
		return commands.BadUsage("--from %s: write auto, otelcol, jaeger1 or jaeger2", c.from)
	}
	if c.env != (len(in.Args) == 0) || len(in.Args) > 1 {
		return commands.BadUsage("name one file (- is standard input), or pass --env; of several --config files, translate each, " +
			"and repeat --config with the results")
	}
	if c.env && from == Auto {
		from = Jaeger1
	}
	source, name, err := c.read(in.Args)
	if err != nil {
		return err
	}
	result, err := Migrate(Input{From: from, Source: source, Components: c.components(), Presets: c.presets(), Service: c.service,
		Process: c.env})
	if err != nil {
		return &commands.ExitError{Code: 2, Err: fmt.Errorf("%s: %w", name, err)}
	}
	if err := c.write(in.Stdout, result.YAML); err != nil {
		return &commands.ExitError{Code: 2, Err: err}
	}
	if result.Decisions > 0 {
		return fmt.Errorf("%s: %s; search the output for \"# decide:\"", name, result.Summary())
	}
	fmt.Fprintf(in.Stderr, "%s: %s\n", name, result.Summary())
	return nil
}

// read returns the input and its name.
func (c *command) read(args []string) (source []byte, name string, err error) {
	switch {
	case c.env:
		return environment(os.Environ()), "environment", nil
	case args[0] == "-":
		source, err = io.ReadAll(io.LimitReader(os.Stdin, maxInput+1))
		return source, "standard input", err
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, "", &commands.ExitError{Code: 2, Err: err}
	}
	source, err = io.ReadAll(io.LimitReader(f, maxInput+1))
	return source, args[0], errors.Join(err, f.Close())
}

func (c *command) write(stdout io.Writer, yaml []byte) error {
	if c.output != "" {
		return os.WriteFile(c.output, yaml, 0o600)
	}
	_, err := stdout.Write(yaml)
	return err
}

// environment returns the variables of a process as lines NAME=value. Multi-line variables are left
// out.
func environment(vars []string) []byte {
	var out []byte
	for _, v := range vars {
		if oneLine(v) == v {
			out = append(append(out, v...), '\n')
		}
	}
	return out
}
