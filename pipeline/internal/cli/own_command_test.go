package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
)

// greet is a command that prints its flag and its arguments.
func greet(name string) commands.Command {
	return commands.Command{Name: name, Args: "NAME [--loud]", Doc: "greet", Group: "speech",
		Examples: []string{"tracing " + name + " Ann"},
		Setup: func(fs *flag.FlagSet) func(context.Context, commands.Invocation) error {
			loud := fs.Bool("loud", false, "Says so.")
			return func(ctx context.Context, in commands.Invocation) error {
				switch strings.Join(in.Args, " ") {
				case "":
					return fmt.Errorf("greeting: %w", commands.BadUsage("missing name"))
				case "ghost":
					return errors.New("it is gone")
				case "wall":
					return &commands.ExitError{Code: 3, Err: errors.New("wall does not listen")}
				case "Sisyphus":
					<-ctx.Done()
					return fmt.Errorf("rolling: %w", ctx.Err())
				}
				fmt.Fprintln(in.Stdout, name, *loud, in.Args)
				return nil
			}
		}}
}

func TestCommandsOfComponents(t *testing.T) {
	factories := hosttest.NewWorld().Factories()
	factories[0] = factories[0].Commands(greet("say hello"), greet("say goodbye")).Commands(greet("wave"))
	f := func(args string, code int, stdout, stderr string) {
		t.Helper()
		var out, err bytes.Buffer
		got := app.Run(t.Context(), strings.Fields(args), &out, &err, factories)
		if got != code || !strings.Contains(out.String(), stdout) || !strings.Contains(err.String(), stderr) || stderr == "" && err.Len() > 0 {
			t.Errorf("%s: %d, %q, %q", args, got, out.String(), err.String())
		}
	}
	f("say hello Ann --loud Bob", 0, "say hello true [Ann Bob]\n", "")
	f("wave Ann", 0, "wave false [Ann]\n", "")
	f("say hello --help", 0, "usage: tracing say hello NAME [--loud]\n\nGreet.\n\n"+
		"examples:\n  tracing say hello Ann\n\nflags:\n  --loud  Says so.\n", "")
	f("say hello ghost", 1, "", "tracing: it is gone\n")
	f("say hello wall", 3, "", "tracing: wall does not listen\n")
	f("say hello", 2, "", "tracing: greeting: missing name\n\nusage: tracing say hello NAME")
	f("say hello Ann --lout", 2, "", "unknown flag --lout; did you mean --loud?\n\nusage: tracing say hello")
	f("say hello Ann --config x", 2, "", "unknown flag --config")
	const group = "usage: tracing say hello NAME [--loud]\n           greet\n" +
		"       tracing say goodbye NAME [--loud]\n           greet\n"
	f("say", 2, "", "tracing: missing command after \"say\"\n\n"+group)
	f("say helo", 2, "", "tracing: unknown command \"say helo\"; did you mean \"hello\"?\n\n"+group)
	f("say --help", 0, group+"\nRun \"tracing help say COMMAND\" for the flags of a command.\n", "")
	f("say help", 0, group, "")
	f("wavy", 2, "", "did you mean \"wave\"?")
	f("help", 0, "\nspeech:\n  say hello     greet\n  say goodbye   greet\n  wave          greet\n", "")
	f("help say", 0, group, "")
	f("help say hello", 0, "usage: tracing say hello NAME", "")
	f("help say helo", 2, "", "unknown command \"say helo\"; did you mean \"hello\"?")
}

// An interrupted command prints that it was interrupted.
func TestCommandInterrupted(t *testing.T) {
	factories := hosttest.NewWorld().Factories()
	factories[0] = factories[0].Commands(greet("wave"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err bytes.Buffer
	if code := app.Run(ctx, []string{"wave", "Sisyphus"}, &out, &err, factories); code != 1 ||
		err.String() != "tracing: interrupted\n" || out.Len() > 0 {
		t.Errorf("%d, %q, %q", code, out.String(), err.String())
	}
}
