// Package cli is the command line of the program: it parses arguments, and runs the program or one
// of its subcommands.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
	"github.com/tracing-backend/tracing/pipeline/internal/host"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// Exit codes of the program.
const (
	exitOK     = 0
	ExitFailed = 1 // an error at runtime
	exitUsage  = 2 // a mistake in the command line or the configuration
)

// Program is the program to run.
type Program struct {
	Load           config.Options // factories and presets; the command line adds the rest
	Build          status.Build
	Stdout, Stderr io.Writer
}

// Run parses the command line and runs the program until it is done or ctx ends. It returns the
// exit code: 0 for success, 1 for an error at runtime, 2 for a mistake in the command line or the
// configuration.
func Run(ctx context.Context, args []string, p Program) int {
	c := &command{stdout: p.Stdout, stderr: p.Stderr, load: p.Load, build: p.Build}
	return c.run(ctx, args)
}

type command struct {
	stdout, stderr io.Writer
	load           config.Options
	build          status.Build

	// Flags and argument of single subcommands.
	origin, defaults, dot bool
	endpoint              string
	deletion              deleteFlags
	operand               string // PRESET or TYPE
}

// subcommand is one use of the program. The subcommand without a name runs it.
type subcommand struct {
	name    string
	args    string
	doc     string
	operand string              // what may follow the name: operandPreset, operandType or ""
	flags   func(*flag.FlagSet) // defines the flags of the subcommand; nil: none
	run     func(context.Context) int
}

const (
	operandPreset = "PRESET"
	operandType   = "TYPE"
)

func (c *command) subcommands() []subcommand {
	return []subcommand{
		{args: "[PRESET] [flags]", operand: operandPreset, run: c.serve,
			doc: "run a preset (by default the first one) or the configuration given by --config"},
		{name: "validate", args: "[PRESET] [flags]", operand: operandPreset, run: c.validate,
			doc: "check the configuration, and the files and folders that it names, and exit"},
		{name: "print-config", args: "[PRESET] [flags] [--origin] [--defaults]", operand: operandPreset, run: c.printConfig,
			doc: "print the configuration, optionally with the source of each value and with all defaults",
			flags: func(fs *flag.FlagSet) {
				fs.BoolVar(&c.origin, "origin", false, "")
				fs.BoolVar(&c.defaults, "defaults", false, "")
			}},
		{name: "graph", args: "[PRESET] [flags] [--dot]", doc: "print the pipelines as text or for Graphviz", operand: operandPreset,
			run:   c.graph,
			flags: func(fs *flag.FlagSet) { fs.BoolVar(&c.dot, "dot", false, "") }},
		{name: "healthcheck", args: "[PRESET] [flags] [--endpoint HOST:PORT]", operand: operandPreset, run: c.healthcheck,
			doc:   "check whether the process at --endpoint, or else the process with this configuration, is ready; exit code 0 if it is",
			flags: func(fs *flag.FlagSet) { fs.StringVar(&c.endpoint, "endpoint", "", "") }},
		{name: "delete", args: "[PRESET] [flags] --trace ID|--service S|--to TIME", operand: operandPreset, run: c.deleteSpans,
			doc:   "delete spans from the store of a running process; more: --from, --tenant, --store, --admin URL, --header, --timeout, --yes",
			flags: c.deletion.define},
		{name: "components", args: "[TYPE]", doc: "list the component types, or the keys of one type", operand: operandType, run: c.components},
		{name: "docs", doc: "print the configuration reference as Markdown", run: c.docs},
		{name: "version", doc: "print the version", run: c.version},
		{name: "help", doc: "print this help and all flags", run: func(context.Context) int {
			c.usage(c.stdout)
			return exitOK
		}},
	}
}

func (c *command) run(ctx context.Context, args []string) int {
	if own, rest, ok := c.findOwn(args); ok {
		return c.runOwn(ctx, own, rest)
	}
	all := c.subcommands()
	chosen := all[0]
	if len(args) > 0 {
		word := args[0]
		i := slices.IndexFunc(all, func(s subcommand) bool { return s.name == word })
		switch {
		case i > 0:
			chosen, args = all[i], args[1:]
		case word != "" && !strings.HasPrefix(word, "-") && !slices.Contains(c.presets(), word):
			return c.unknownCommand(args)
		}
	}
	operands, err := c.parseFlags(args, chosen.flags)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.usage(c.stdout)
		return exitOK
	case err != nil:
		return c.misuse(err)
	}
	if chosen.operand != "" && len(operands) > 0 {
		c.operand, operands = operands[0], operands[1:]
	}
	if len(operands) > 0 {
		return c.misuse(fmt.Errorf("unexpected argument %q", operands[0]))
	}
	if chosen.operand == operandPreset {
		c.load.Preset = c.operand
	}
	return chosen.run(ctx)
}

// unknownCommand runs a group of commands, or prints the known commands.
func (c *command) unknownCommand(args []string) int {
	if group := c.group(args[0]); len(group) > 0 {
		return c.runGroup(args[0], args[1:], group)
	}
	known := c.presets()
	for _, s := range c.subcommands()[1:] {
		known = append(known, s.name)
	}
	for _, own := range c.ownCommands() {
		known = append(known, strings.Fields(own.Name)[0])
	}
	slices.Sort(known)
	return c.misuse(fmt.Errorf("unknown command or preset %q%s", args[0], yamltree.Suggest(args[0], slices.Compact(known), "known")))
}

func (c *command) presets() []string {
	names := make([]string, len(c.load.Presets))
	for i, p := range c.load.Presets {
		names[i] = p.Name
	}
	return names
}

// misuse prints an error and the usage.
func (c *command) misuse(err error) int {
	if errors.Is(err, errUnknownFlag) { // the usage would hide the similar flags
		c.fail(err)
		return exitUsage
	}
	fmt.Fprintf(c.stderr, "tracing: %v\n\n", err)
	c.synopsis(c.stderr)
	return exitUsage
}

// fail prints an error.
func (c *command) fail(err error) int {
	fmt.Fprintf(c.stderr, "tracing: %v\n", err)
	return ExitFailed
}

// prepare loads the configuration and builds the components without starting them. It returns nil
// and the exit code if that fails.
func (c *command) prepare() (*host.App, int) {
	cfg, err := config.Load(c.load)
	if err != nil {
		fmt.Fprintln(c.stderr, err)
		return nil, exitUsage
	}
	app, err := host.New(cfg, host.Options{Log: c.stderr, Build: c.build})
	if err != nil {
		fmt.Fprintf(c.stderr, "tracing: %v\n", err)
		return nil, exitUsage
	}
	return app, exitOK
}

func (c *command) serve(ctx context.Context) int {
	files := config.NewWatcher(c.load.ReadFile)
	c.load.ReadFile = files.ReadFile
	app, code := c.prepare()
	if app == nil {
		return code
	}
	if err := app.Serve(ctx, files, func() (*config.Config, error) { return config.Load(c.load) }); err != nil {
		return ExitFailed
	}
	return exitOK
}
