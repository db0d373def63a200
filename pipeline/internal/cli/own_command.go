package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// ownCommands returns the commands of all components.
func (c *command) ownCommands() []commands.Command {
	var all []commands.Command
	for _, f := range c.load.Factories {
		all = append(all, f.CommandList()...)
	}
	return all
}

// findOwn returns the command whose name args begins with, and the arguments after the name.
func (c *command) findOwn(args []string) (found commands.Command, rest []string, ok bool) {
	for _, own := range c.ownCommands() {
		words := strings.Fields(own.Name)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return own, args[len(words):], true
		}
	}
	return commands.Command{}, nil, false
}

// group returns the commands whose name has several words and begins with word.
func (c *command) group(word string) []commands.Command {
	return slices.DeleteFunc(c.ownCommands(), func(own commands.Command) bool { return !strings.HasPrefix(own.Name, word+" ") })
}

// runGroup handles a group that is called without one of its commands. It prints help or an error.
func (c *command) runGroup(word string, args []string, group []commands.Command) int {
	switch {
	case len(args) == 0:
		fmt.Fprintf(c.stderr, "tracing: missing command after %q\n\n", word)
	case isHelp(args[0]):
		c.groupHelp(c.stdout, word, group)
		return exitOK
	default:
		var names []string
		for _, own := range group {
			names = append(names, strings.TrimPrefix(own.Name, word+" "))
		}
		fmt.Fprintf(c.stderr, "tracing: unknown command %q%s\n\n", word+" "+args[0], yamltree.Suggest(args[0], names, "known"))
	}
	c.groupHelp(c.stderr, word, group)
	return exitUsage
}

// runOwn runs a command of a component.
func (c *command) runOwn(ctx context.Context, own commands.Command, args []string) int {
	in := commands.Invocation{Stdout: c.stdout, Stderr: c.stderr, Build: c.build}
	run, err := c.setupOwn(own, args, &in)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.commandHelp(ownUsage(own))
		return exitOK
	case err != nil:
		return c.misuse(ownUsage(own), err)
	}
	if own.Configured {
		cfg, err := config.Load(c.load)
		if err != nil {
			fmt.Fprintln(c.stderr, err)
			return exitUsage
		}
		in.Configuration = cfg
	}
	err = run(ctx, in)
	switch wrong := (*commands.UsageError)(nil); {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		return c.misuse(ownUsage(own), err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return c.fail(errors.New("interrupted"))
	}
	code := c.fail(err)
	if exit := (*commands.ExitError)(nil); errors.As(err, &exit) {
		code = exit.Code
	}
	return code
}

// ownRun runs a command of a component whose flags were parsed.
type ownRun = func(context.Context, commands.Invocation) error

// setupOwn parses the arguments of a component's command: its own flags and, if it loads a
// configuration, the configuration flags and the preset.
func (c *command) setupOwn(own commands.Command, args []string, in *commands.Invocation) (run ownRun, err error) {
	if !own.Configured {
		fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		run = own.Setup(fs)
		in.Args, err = parseOperands(fs, args)
		return run, err
	}
	operands, err := c.parseFlags(args, func(fs *flag.FlagSet) { run = own.Setup(fs) })
	switch {
	case err != nil:
		return nil, err
	case len(operands) > 1:
		return nil, fmt.Errorf("unexpected argument %q", operands[1])
	case len(operands) == 1:
		c.load.Preset = operands[0]
	case len(c.load.Files) == 0:
		c.load.Preset = own.Preset
	}
	return run, nil
}

// ownUsage returns the usage of a command of a component.
func ownUsage(own commands.Command) usage {
	return usage{name: own.Name, args: own.Args, doc: own.Doc, group: own.Group, examples: own.Examples, configured: own.Configured,
		flags: func(fs *flag.FlagSet) { own.Setup(fs) }}
}
