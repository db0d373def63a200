package pipeline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// Exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong while running
	exitUsage  = 2 // the command line or the configuration is wrong
)

// version is set by the linker for releases.
var version = "dev"

// Main is the whole program around a list of factories: it reads the command line, runs, and exits. A custom build is a main of one line:
//
//	pipeline.Main(append(tracing.Components(), mything.Factory()), tracing.Presets()...)
func Main(factories []Factory, presets ...Preset) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals // a second one does not wait
		os.Exit(exitFailed)
	}()
	os.Exit(Run(ctx, os.Args[1:], os.Stdout, os.Stderr, factories, presets...))
}

// Run is Main without the process: it runs until ctx ends, then stops gracefully, and returns the exit code: 0, 1 for a failure, 2 for a
// wrong command line or configuration.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, factories []Factory, presets ...Preset) int {
	c := &command{stdout: stdout, stderr: stderr, load: LoadOptions{Factories: factories, Presets: presets}}
	return c.run(ctx, args)
}

type command struct {
	stdout, stderr io.Writer
	load           LoadOptions

	// Of single subcommands.
	origin, defaults, dot bool
	endpoint              string
	deletion              deleteFlags
	word                  string // what stands behind the subcommand and is no flag
}

// subcommand is one way to use the program. The one without a name runs it.
type subcommand struct {
	name  string
	args  string
	doc   string
	word  string              // what may stand behind the name: PRESET, TYPE or nothing
	flags func(*flag.FlagSet) // its own flags, if any
	run   func(context.Context) int
}

const (
	wordPreset = "PRESET"
	wordType   = "TYPE"
)

func (c *command) subcommands() []subcommand {
	return []subcommand{
		{args: "[PRESET] [flags]", doc: "run; without PRESET and --config, the first preset runs", word: wordPreset, run: c.serve},
		{name: "validate", args: "[PRESET] [flags]", doc: "check the configuration and exit", word: wordPreset, run: c.validate},
		{name: "print-config", args: "[PRESET] [flags] [--origin] [--defaults]", word: wordPreset, run: c.printConfig,
			doc: "print the configuration; also where each value comes from, also all defaults",
			flags: func(fs *flag.FlagSet) {
				fs.BoolVar(&c.origin, "origin", false, "")
				fs.BoolVar(&c.defaults, "defaults", false, "")
			}},
		{name: "graph", args: "[PRESET] [flags] [--dot]", doc: "print the pipelines, as text or for Graphviz", word: wordPreset, run: c.graph,
			flags: func(fs *flag.FlagSet) { fs.BoolVar(&c.dot, "dot", false, "") }},
		{name: "healthcheck", args: "[PRESET] [flags] [--endpoint HOST:PORT]", word: wordPreset, run: c.healthcheck,
			doc:   "ask a running process, else the one with this configuration; exit code 0: it is ready",
			flags: func(fs *flag.FlagSet) { fs.StringVar(&c.endpoint, "endpoint", "", "") }},
		{name: "delete", args: "[PRESET] [flags] --trace ID|--service S|--to TIME", word: wordPreset, run: c.deleteSpans,
			doc:   "delete spans from the store of a running process; also --from, --tenant, --store, --admin URL, --header, --yes",
			flags: c.deletion.define},
		{name: "components", args: "[TYPE]", doc: "list the types of components, or the keys of one", word: wordType, run: c.components},
		{name: "docs", doc: "print the configuration reference as Markdown", run: c.docs},
		{name: "version", doc: "print the version", run: c.version},
		{name: "help", doc: "print this and all flags", run: func(context.Context) int {
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
	words, err := c.parseFlags(args, chosen.flags)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.usage(c.stdout)
		return exitOK
	case err != nil:
		return c.misuse(err)
	}
	if chosen.word != "" && len(words) > 0 {
		c.word, words = words[0], words[1:]
	}
	if len(words) > 0 {
		return c.misuse(fmt.Errorf("unexpected argument %q", words[0]))
	}
	if chosen.word == wordPreset {
		c.load.Preset = c.word
	}
	return chosen.run(ctx)
}

// unknownCommand says which commands there are.
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
	return c.misuse(fmt.Errorf("unknown command or preset %q%s", args[0], conf.Suggest(args[0], slices.Compact(known), "known")))
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

func (c *command) misuse(err error) int {
	fmt.Fprintf(c.stderr, "tracing: %v\n\n", err)
	c.synopsis(c.stderr)
	return exitUsage
}

// prepare loads the configuration and builds the components, without starting anything.
func (c *command) prepare() (*App, int) {
	cfg, err := Load(c.load)
	if err != nil {
		fmt.Fprintln(c.stderr, err)
		return nil, exitUsage
	}
	app, err := New(cfg, AppOptions{Log: c.stderr, Build: buildInfo()})
	if err != nil {
		fmt.Fprintf(c.stderr, "tracing: %v\n", err)
		return nil, exitUsage
	}
	return app, exitOK
}

func (c *command) validate(context.Context) int {
	app, code := c.prepare()
	if app == nil {
		return code
	}
	c.warn(app.config)
	fmt.Fprintln(c.stdout, "the configuration is valid")
	return exitOK
}

func (c *command) warn(config *Config) {
	for _, w := range config.warnings {
		fmt.Fprintln(c.stderr, "warning:", w)
	}
}

// buildInfo reads what the toolchain noted about this program.
func buildInfo() Build {
	b := Build{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		}
	}
	return b
}
