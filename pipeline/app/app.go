// Package app is the entry point of programs: it turns a list of components into a program with
// command line, configuration, and lifecycle. A custom build is a main function of one line:
//
//	app.Main(append(tracing.Components(), mycomponent.Factory()), tracing.Presets()...)
package app

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/cli"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/host"
	"github.com/tracing-backend/tracing/pipeline/status"
)

type (
	// App is a running configuration, for tests of whole programs.
	App = host.App
	// Options are the parameters of New.
	Options = host.Options
	// Config is a configuration without mistakes.
	Config = config.Config
	// Component is the configuration of one component.
	Component = config.Component
	// LoadOptions are the sources of a configuration.
	LoadOptions = config.Options
	// Override is one value from the command line.
	Override = config.Override
	// FlagEdit is one value of a configuration that a flag or environment variable sets.
	FlagEdit = config.FlagEdit
	// FlagNote says why a flag or environment variable has no effect, or is a mistake.
	FlagNote = config.FlagNote
	// Preset is a configuration that is built into the program.
	Preset = config.Preset
	// Problem is a mistake in a configuration, with its position.
	Problem = config.Problem
	// Problems is the error of Load if sources have mistakes.
	Problems = config.Problems
)

// The linker sets these variables: the version in every build with make, the commit and its date in
// releases.
var (
	version = "dev"
	commit  = ""
	date    = "" // RFC 3339
)

// Main runs the program and exits. The first preset runs if the command line names no preset and no
// file. SIGINT and SIGTERM stop the program gracefully; a second signal stops it immediately.
// SIGHUP reloads the configuration.
func Main(components []pipeline.Factory, presets ...Preset) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(cli.ExitFailed)
	}()
	os.Exit(Run(ctx, os.Args[1:], os.Stdout, os.Stderr, components, presets...))
}

// Run runs the program with the given arguments until it is done or ctx ends. It stops gracefully
// and returns the exit code: 0 for success, 1 for an error at runtime, 2 for a mistake in the
// command line or the configuration.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, components []pipeline.Factory, presets ...Preset) int {
	return cli.Run(ctx, args, cli.Program{
		Load: LoadOptions{Factories: components, Presets: presets}, Build: buildInfo(), Stdout: stdout, Stderr: stderr,
	})
}

// Load reads, merges and checks a configuration. The error lists all mistakes, one per line.
func Load(o LoadOptions) (*Config, error) { return config.Load(o) }

// FlagEffects returns the effect of command-line arguments, and of variables given as `NAME=value`,
// on the configuration of o: the edits in order, and a note for each flag or variable that edits
// nothing. Stores that are not supported are replaced.
func FlagEffects(o LoadOptions, args, environ []string) ([]FlagEdit, []FlagNote, error) {
	return config.FlagEffects(o, args, environ)
}

// ParseSet parses the argument of --set: `path=value`.
func ParseSet(s string) (Override, error) { return config.ParseSet(s) }

// New builds all components of a configuration without starting them.
func New(c *Config, o Options) (*App, error) { return host.New(c, o) }

// buildInfo returns the version, the commit and its date, as set by the linker or else as recorded
// by the toolchain.
func buildInfo() status.Build {
	b := status.Build{Version: version, Commit: commit, Date: date}
	info, ok := debug.ReadBuildInfo()
	if !ok || commit != "" {
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
