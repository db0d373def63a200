// Package commands is the API for authors of commands that come with a component, such as `tracing
// store verify`. A command runs in a process of its own; most commands are clients of the running
// program.
package commands

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/tracing-backend/tracing/pipeline/status"
)

// Command is a command that comes with a component and runs in a process of its own: `tracing store
// verify data/disk`. pipeline.Factory.Commands adds it to a factory. Unless it is Configured, a
// command reads no configuration and accepts no configuration flags.
type Command struct {
	Name string // words after the program's name: one word, or several that form a group: `store verify`
	Args string // arguments for the usage text: `DIR [--json]`
	Doc  string // one sentence without a full stop; overviews omit the text after a semicolon
	// Group is the heading under which `tracing help` lists the command.
	Group string
	// Examples are complete command lines for the help text: `tracing store verify data`.
	Examples []string
	// Configured commands load a configuration as the program itself does: they accept a preset as
	// the only argument, and all configuration flags with their environment variables. Mistakes in
	// the configuration end the command with exit code 2 before it runs.
	Configured bool
	// Preset is the preset of a Configured command that is called without a preset and without
	// configuration files. "" is the first preset of the program.
	Preset string
	// Setup defines the flags of the command and returns the function that runs it. The program
	// prints the function's error and exits with code 1, or with the code of an [ExitError]. For an
	// error of [BadUsage], it prints the usage as well and exits with code 2.
	Setup func(flags *flag.FlagSet) func(ctx context.Context, in Invocation) error
}

// Invocation is the input and output of a [Command] in addition to its flags. The context of the
// command ends when the process is asked to stop.
type Invocation struct {
	Args           []string // arguments that are not flags; flags may precede and follow them
	Stdout, Stderr io.Writer
	Build          status.Build // version of the program
	// Configuration is the configuration of a Configured command, of the type *app.Config.
	Configuration any
}

// UsageError is the error of a [Command] that was called with wrong arguments.
type UsageError struct{ Err error }

// Error returns the text of Err.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

// ExitError is the error of a [Command] whose exit code is not 1.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the text of Err.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// BadUsage returns a [*UsageError] with a formatted text.
func BadUsage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// HeaderFlag defines the repeatable flag --header and returns the headers, which are filled when
// the flags are parsed. doc says which requests carry the header: `Header for all requests`.
func HeaderFlag(flags *flag.FlagSet, doc string) http.Header {
	header := http.Header{}
	flags.Func("header", doc+", as `Name: value`; may be repeated.", func(text string) error {
		name, value, ok := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return fmt.Errorf("%q is not of the form `Name: value`", text)
		}
		if value = strings.TrimSpace(value); !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("%q is not a valid header", text)
		}
		header.Add(name, value)
		return nil
	})
	return header
}
