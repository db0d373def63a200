package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// ownCommands returns the commands of all components.
func (c *command) ownCommands() []pipeline.Command {
	var all []pipeline.Command
	for _, f := range c.load.Factories {
		all = append(all, f.CommandList()...)
	}
	return all
}

// findOwn returns the command whose name args begins with, and the arguments after the name.
func (c *command) findOwn(args []string) (found pipeline.Command, rest []string, ok bool) {
	for _, own := range c.ownCommands() {
		words := strings.Fields(own.Name)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return own, args[len(words):], true
		}
	}
	return pipeline.Command{}, nil, false
}

// group returns the commands whose name has several words and begins with word.
func (c *command) group(word string) []pipeline.Command {
	return slices.DeleteFunc(c.ownCommands(), func(own pipeline.Command) bool { return !strings.HasPrefix(own.Name, word+" ") })
}

// runGroup handles a group that is called without one of its commands: it prints help, or an error.
func (c *command) runGroup(word string, args []string, group []pipeline.Command) int {
	out, code := c.stderr, exitUsage
	switch {
	case len(args) == 0:
		fmt.Fprintf(out, "tracing: missing command after %q\n\n", word)
	case slices.Contains([]string{"help", "--help", "-help", "-h"}, args[0]):
		out, code = c.stdout, exitOK
	default:
		var names []string
		for _, own := range group {
			names = append(names, strings.TrimPrefix(own.Name, word+" "))
		}
		fmt.Fprintf(out, "tracing: unknown command %q%s\n\n", word+" "+args[0], yamltree.Suggest(args[0], names, "known"))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "usage: "
	for _, own := range group {
		fmt.Fprintf(w, "%stracing %s %s\t%s\n", head, own.Name, own.Args, own.Doc)
		head = "       "
	}
	w.Flush() //nolint:errcheck // a terminal
	fmt.Fprintf(out, "\nRun \"tracing %s COMMAND --help\" for the flags of a command.\n", word)
	return code
}

// runOwn runs a command of a component.
func (c *command) runOwn(ctx context.Context, own pipeline.Command, args []string) int {
	fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	run := own.Setup(fs)
	operands, err := parseOperands(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		writeOwnUsage(c.stdout, own)
		return exitOK
	case err != nil:
		return c.misuseOwn(own, err)
	}
	err = run(ctx, pipeline.Invocation{Args: operands, Stdout: c.stdout, Stderr: c.stderr})
	var wrong *pipeline.UsageError
	var exit *pipeline.ExitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		return c.misuseOwn(own, err)
	case errors.As(err, &exit):
		c.fail(err)
		return exit.Code
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return c.fail(errors.New("interrupted"))
	}
	return c.fail(err)
}

func (c *command) misuseOwn(own pipeline.Command, err error) int {
	fmt.Fprintf(c.stderr, "tracing: %v\n\n", err)
	writeOwnUsage(c.stderr, own)
	return exitUsage
}

// writeOwnUsage writes the usage of a command and its flags.
func writeOwnUsage(out io.Writer, own pipeline.Command) {
	fmt.Fprintf(out, "usage: tracing %s %s\n\n%s.\n", own.Name, own.Args, own.Doc)
	fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
	own.Setup(fs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fs.VisitAll(func(f *flag.Flag) { fmt.Fprintf(w, "  --%s\t%s\n", f.Name, f.Usage) })
	w.Flush() //nolint:errcheck // a terminal
}
