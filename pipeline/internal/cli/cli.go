// Package cli is the command line of the program: it parses arguments, and runs the program or one
// of its subcommands.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
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
	if c.load.ReadFile == nil {
		c.load.ReadFile = config.ReadFile(ctx)
	}
	return c.run(ctx, args)
}

type command struct {
	stdout, stderr io.Writer
	load           config.Options
	build          status.Build

	// Flags and argument of single subcommands.
	origin, defaults, dot, printVersion bool
	endpoint                            string
	pid                                 int
	deletion                            deleteFlags
	operand                             string // PRESET, TYPE, DIR or SHELL
	chosen                              usage  // of the subcommand that runs
}

// subcommand is a command of the program itself. The subcommand without a name runs the program.
type subcommand struct {
	usage
	operand string // what may follow the name: operandPreset, operandType or ""
	run     func(context.Context) int
}

const (
	operandPreset = "PRESET"
	operandType   = "TYPE"
	operandFolder = "DIR"
)

// Headings of the overview.
const (
	groupConfiguration = "configuration"
	groupRunning       = "running processes"
	groupOther         = "other"
)

func (c *command) subcommands() []subcommand {
	preset := func(group, name, args, doc string, flags func(*flag.FlagSet), run func(context.Context) int, examples ...string) subcommand {
		u := usage{name: name, args: "[PRESET] [flags]" + args, doc: doc, group: group, configured: true, flags: flags, examples: examples}
		return subcommand{usage: u, operand: operandPreset, run: run}
	}
	return []subcommand{
		preset(groupConfiguration, "", "",
			"run a preset (by default the first one) or the configuration given by --config",
			func(fs *flag.FlagSet) { fs.BoolVar(&c.printVersion, "version", false, "Print the version and exit.") }, c.serve,
			"tracing", "tracing agent --reporter.grpc.host-port=collector:14250", "tracing --config tracing.yaml"),
		preset(groupConfiguration, "validate", "", "check the configuration, and the files and folders that it names, and exit", nil, c.validate,
			"tracing validate --config tracing.yaml --strict"),
		preset(groupConfiguration, "print-config", " [--origin] [--defaults]",
			"print the configuration; optionally with the source of each value and all defaults",
			func(fs *flag.FlagSet) {
				fs.BoolVar(&c.origin, "origin", false, "Print the source of each value.")
				fs.BoolVar(&c.defaults, "defaults", false, "Print keys with default values as well.")
			}, c.printConfig, "tracing print-config collector > tracing.yaml", "tracing print-config --config tracing.yaml --origin"),
		preset(groupConfiguration, "graph", " [--dot]", "print the pipelines as text or for Graphviz",
			func(fs *flag.FlagSet) { fs.BoolVar(&c.dot, "dot", false, "Print the input of Graphviz.") },
			c.graph, "tracing graph", "tracing graph collector --dot | dot -Tsvg > pipelines.svg"),
		preset(groupRunning, "healthcheck", " [--endpoint HOST:PORT|--pid ID]",
			"check whether a running process is ready; exit code 0 if it is. "+
				"The process is the one at --endpoint or with the id --pid, or else the one with this configuration",
			c.defineHealthcheck, c.healthcheck,
			"tracing healthcheck", "tracing healthcheck agent", "tracing healthcheck --endpoint=tracing:14269",
			"tracing healthcheck --pid=1"),
		preset(groupRunning, "delete", " --trace ID|--service S|--to TIME", "delete spans from the store of a running process",
			c.deletion.define, c.deleteSpans,
			"tracing delete --service checkout --to 2026-11-21T17:00:00Z --dry-run"),
		{usage{name: "components", args: "[TYPE]", group: groupConfiguration, doc: "list the component types, or the keys of one type",
			examples: []string{"tracing components", "tracing components otlp"}}, operandType, c.components},
		{usage{name: "docs", args: "[DIR]", group: groupConfiguration,
			doc:      "print the configuration reference as Markdown, or write its pages to a folder",
			examples: []string{"tracing docs > reference.md", "tracing docs ./reference"}}, operandFolder, c.docs},
		{usage{name: "completion", args: "SHELL", group: groupOther, doc: "print a script for tab completion in bash, zsh or fish",
			examples: []string{"source <(tracing completion bash)", "source <(tracing completion zsh)", "tracing completion fish | source"}},
			operandShell, c.completion},
		{usage{name: "version", group: groupOther, doc: "print the version; also --version"}, "", c.version},
		{usage{name: "help", args: "[COMMAND|PRESET|flags]", group: groupOther, doc: "print an overview, or help for a command"}, "", nil},
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
		case word == allFlags:
			return c.help([]string{"flags", word})
		case isHelp(word):
			return c.help(args[1:])
		case slices.Contains(c.presets(), word) && slices.ContainsFunc(args[1:], isHelpFlag):
			return c.help(append([]string{word}, slices.DeleteFunc(slices.Clone(args[1:]), func(a string) bool { return a != allFlags })...))
		case word == "--version" || word == "-version":
			return c.version(ctx)
		case word == completeCommand:
			return c.complete(args[1:])
		case i > 0:
			chosen, args = all[i], args[1:]
		case word != "" && !strings.HasPrefix(word, "-") && !slices.Contains(c.presets(), word):
			return c.unknownCommand(args)
		}
	}
	operands, err := c.parseFlags(args, chosen.flags)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.commandHelp(chosen.usage)
		return exitOK
	case err != nil:
		return c.misuse(chosen.usage, err)
	}
	if chosen.operand != "" && len(operands) > 0 {
		c.operand, operands = operands[0], operands[1:]
	}
	if len(operands) > 0 {
		return c.misuse(chosen.usage, fmt.Errorf("unexpected argument %q", operands[0]))
	}
	if chosen.operand == operandPreset {
		c.load.Preset = c.operand
	}
	c.chosen = chosen.usage
	return chosen.run(ctx)
}

// unknownCommand runs a group of commands, or prints the known commands.
func (c *command) unknownCommand(args []string) int {
	if group := c.group(args[0]); len(group) > 0 {
		return c.runGroup(args[0], args[1:], group)
	}
	known := c.presets()
	for _, u := range c.usages() {
		known = append(known, strings.Fields(u.name)[0])
	}
	slices.Sort(known)
	hint := yamltree.Suggest(args[0], slices.Compact(known), "known")
	if slices.ContainsFunc(c.load.Factories, func(f pipeline.Factory) bool { return f.Type() == args[0] }) {
		hint = fmt.Sprintf("; for the keys of this component, run \"tracing components %s\"", args[0])
	}
	fmt.Fprintf(c.stderr, "tracing: unknown command or preset %q%s\n\nRun \"tracing help\" for an overview.\n", args[0], hint)
	return exitUsage
}

func (c *command) presets() []string {
	names := make([]string, len(c.load.Presets))
	for i, p := range c.load.Presets {
		names[i] = p.Name
	}
	return names
}

func (c *command) lookupEnv(name string) (string, bool) {
	if c.load.LookupEnv != nil {
		return c.load.LookupEnv(name)
	}
	return os.LookupEnv(name)
}

// misuse prints an error in the arguments of a command and its usage.
func (c *command) misuse(u usage, err error) int {
	fmt.Fprintf(c.stderr, "tracing: %v\n\nusage: %s\n\nRun \"%s\" for its flags.\n", err, u.line(), u.helpCommand())
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
		fmt.Fprintf(c.stderr, "tracing: %v\n", cfg.Mask(err))
		return nil, exitUsage
	}
	return app, exitOK
}

func (c *command) serve(ctx context.Context) int {
	if c.printVersion {
		return c.version(ctx)
	}
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
