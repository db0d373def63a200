package pipeline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// Command is a command that comes with a component, for what it keeps outside of the running program: `tracing store verify data/disk`.
// [Factory.Commands] gives it to a component. It reads no configuration and takes none of its flags.
type Command struct {
	Name string // what stands behind the program's name: one word, or several that make a group: `store verify`
	Args string // what may follow, for the usage: `DIR [--json]`
	Doc  string // one sentence without a full stop
	// Setup defines the command's flags, if it has any, and returns what runs it. The error is printed and makes the exit code 1, one of
	// [Misuse] makes it 2 and is printed with the usage.
	Setup func(flags *flag.FlagSet) func(ctx context.Context, in Invocation) error
}

// Invocation is what a [Command] gets beside its flags. ctx ends when the process is asked to stop.
type Invocation struct {
	Args           []string // what is no flag; flags may stand before, between and behind
	Stdout, Stderr io.Writer
}

// Misuse returns the error of a command that was called in a wrong way.
func Misuse(format string, args ...any) error { return &misuseError{fmt.Errorf(format, args...)} }

type misuseError struct{ error }

func (e *misuseError) Unwrap() error { return e.error }

// Commands returns the factory with commands that belong to its components.
func (f Factory) Commands(commands ...Command) Factory {
	f.commands = slices.Concat(f.commands, commands)
	return f
}

// ownCommands returns the commands of all components.
func (c *command) ownCommands() []Command {
	var all []Command
	for _, f := range c.load.Factories {
		all = append(all, f.commands...)
	}
	return all
}

// findOwn returns the command whose name the arguments begin with, and what follows the name.
func (c *command) findOwn(args []string) (found Command, rest []string, ok bool) {
	for _, own := range c.ownCommands() {
		words := strings.Fields(own.Name)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return own, args[len(words):], true
		}
	}
	return Command{}, nil, false
}

// group returns the commands of several words that begin with a word.
func (c *command) group(word string) []Command {
	return slices.DeleteFunc(c.ownCommands(), func(own Command) bool { return !strings.HasPrefix(own.Name, word+" ") })
}

// runGroup answers who calls a group with none of its commands: with help, or with what is wrong.
func (c *command) runGroup(word string, args []string, group []Command) int {
	out, code := c.stderr, exitUsage
	switch {
	case len(args) == 0:
		fmt.Fprintf(out, "tracing: say which command of %s\n\n", word)
	case slices.Contains([]string{"help", "--help", "-help", "-h"}, args[0]):
		out, code = c.stdout, exitOK
	default:
		var names []string
		for _, own := range group {
			names = append(names, strings.TrimPrefix(own.Name, word+" "))
		}
		fmt.Fprintf(out, "tracing: unknown command %q%s\n\n", word+" "+args[0], conf.Suggest(args[0], names, "known"))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "usage: "
	for _, own := range group {
		fmt.Fprintf(w, "%stracing %s %s\t%s\n", head, own.Name, own.Args, own.Doc)
		head = "       "
	}
	w.Flush() //nolint:errcheck // a terminal
	fmt.Fprintf(out, "\ntracing %s COMMAND --help tells the flags of one.\n", word)
	return code
}

// runOwn runs a command of a component.
func (c *command) runOwn(ctx context.Context, own Command, args []string) int {
	fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	run := own.Setup(fs)
	operands, err := parseOperands(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		own.usage(c.stdout)
		return exitOK
	case err != nil:
		return own.misuse(c.stderr, err)
	}
	err = run(ctx, Invocation{Args: operands, Stdout: c.stdout, Stderr: c.stderr})
	switch wrong := (*misuseError)(nil); {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		return own.misuse(c.stderr, err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return c.fail(errors.New("interrupted"))
	}
	return c.fail(err)
}

func (own Command) misuse(out io.Writer, err error) int {
	fmt.Fprintf(out, "tracing: %v\n\n", err)
	own.usage(out)
	return exitUsage
}

// usage writes how to call the command, and its flags.
func (own Command) usage(out io.Writer) {
	fmt.Fprintf(out, "usage: tracing %s %s\n\n%s.\n", own.Name, own.Args, own.Doc)
	fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
	own.Setup(fs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fs.VisitAll(func(f *flag.Flag) { fmt.Fprintf(w, "  --%s\t%s\n", f.Name, f.Usage) })
	w.Flush() //nolint:errcheck // a terminal
}
