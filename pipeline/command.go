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
	"strconv"
	"strings"
	"syscall"

	"go.uber.org/zap"

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
}

type stringList []string

func (l *stringList) String() string { return strings.Join(*l, ",") }

func (l *stringList) Set(s string) error {
	*l = append(*l, s)
	return nil
}

const usage = `usage: tracing [PRESET] [flags]          run; without preset and --config: all-in-one
       tracing validate [PRESET] [flags] check the configuration and exit
       tracing version

presets: %s

flags:
  --config FILE        configuration file; may be repeated, later files override
  --set PATH=VALUE     override one value; parts of the path are joined by "::"
  --log-level LEVEL    debug, info, warn or error
  --strict             treat warnings as errors
`

func (c *command) run(ctx context.Context, args []string) int {
	word := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		word, args = args[0], args[1:]
	}
	switch word {
	case "help":
		c.usage(c.stdout)
		return exitOK
	case "version":
		b := buildInfo()
		fmt.Fprintf(c.stdout, "tracing %s %s %s\n", b.Version, b.Commit, b.Date)
		return exitOK
	case "validate":
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			c.load.Preset, args = args[0], args[1:]
		}
		return c.withFlags(args, c.validate)
	}
	if presets := c.presets(); word != "" && !slices.Contains(presets, word) {
		known := append(presets, "help", "validate", "version")
		return c.misuse(fmt.Errorf("unknown command or preset %q%s", word, conf.Suggest(word, known, "known")))
	}
	c.load.Preset = word
	return c.withFlags(args, func() int { return c.serve(ctx) })
}

func (c *command) presets() []string {
	names := make([]string, len(c.load.Presets))
	for i, p := range c.load.Presets {
		names[i] = p.Name
	}
	return names
}

func (c *command) usage(w io.Writer) { fmt.Fprintf(w, usage, strings.Join(c.presets(), ", ")) }

// withFlags parses the flags, which are sugar for overlays of the configuration, and goes on.
func (c *command) withFlags(args []string, next func() int) int {
	fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var files, set stringList
	fs.Var(&files, "config", "")
	fs.Var(&set, "set", "")
	level := fs.String("log-level", "", "")
	fs.BoolVar(&c.load.Strict, "strict", false, "")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			c.usage(c.stdout)
			return exitOK
		}
		if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
			err = fmt.Errorf("unknown flag --%s%s", name, conf.Suggest(name, []string{"config", "set", "log-level", "strict"}, "known"))
		}
		return c.misuse(err)
	}
	if fs.NArg() > 0 {
		return c.misuse(fmt.Errorf("unexpected argument %q", fs.Arg(0)))
	}
	c.load.Files = files
	if *level != "" {
		c.load.Overrides = append(c.load.Overrides,
			Override{Flag: "--log-level " + *level, Path: []string{"service", "telemetry", "logs", "level"}, Value: strconv.Quote(*level)})
	}
	for _, s := range set {
		o, err := ParseSet(s)
		if err != nil {
			return c.misuse(err)
		}
		c.load.Overrides = append(c.load.Overrides, o)
	}
	return next()
}

func (c *command) misuse(err error) int {
	fmt.Fprintf(c.stderr, "tracing: %v\n\n", err)
	c.usage(c.stderr)
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

func (c *command) validate() int {
	app, code := c.prepare()
	if app == nil {
		return code
	}
	for _, w := range app.config.warnings {
		fmt.Fprintln(c.stderr, "warning:", w)
	}
	fmt.Fprintln(c.stdout, "the configuration is valid")
	return exitOK
}

func (c *command) serve(ctx context.Context) int {
	app, code := c.prepare()
	if app == nil {
		return code
	}
	defer app.log.Sync() //nolint:errcheck // standard error cannot always be synced
	if err := app.Start(ctx); err != nil {
		app.log.Error("cannot start", zap.Error(err))
		return exitFailed
	}
	<-ctx.Done()
	app.log.Info("stopping", zap.Stringer("at-most", app.config.service.StopTimeout))
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.config.service.StopTimeout.Std())
	defer cancel()
	if err := app.Stop(stop); err != nil {
		app.log.Error("did not stop cleanly", zap.Error(err))
		return exitFailed
	}
	return exitOK
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
