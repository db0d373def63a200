package traces

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// Commands returns the commands trace, search and services.
func Commands() []commands.Command {
	const group = "traces"
	t := tool{env: pipeline.SystemEnv(), getenv: os.Getenv, zone: time.Local}
	return []commands.Command{
		{Name: "trace", Args: "ID [-v] [--json] [--raw] [--query URL] [flags]", Group: group, Setup: t.trace,
			Doc:      "show a trace from a running query service",
			Examples: []string{"tracing trace 5b8efff798038103d269b633813fc60c", "tracing trace 5b8efff798038103d269b633813fc60c -v"}},
		{Name: "search", Args: "['{ CONDITIONS }'] [--service S] [--tag KEY=VALUE] [--errors] [--from 1h] [flags]", Group: group,
			Doc: "search for traces in a running query service", Setup: t.search,
			Examples: []string{"tracing search --service checkout --errors", "tracing search '{ duration > 1s }' --from 1d --limit 50"}},
		{Name: "services", Args: "[SERVICE] [--json] [--query URL] [flags]", Group: group, Setup: t.services,
			Doc:      "list the services that a running query service knows, or the operations of one service",
			Examples: []string{"tracing services", "tracing services checkout"}},
	}
}

// tool implements the commands. Its fields give access to the environment.
type tool struct {
	env    pipeline.Env
	getenv func(string) string
	zone   *time.Location // for displayed times
}

type runner = func(context.Context, commands.Invocation) error

// defaultMaxSpans is the default of --max-spans.
const defaultMaxSpans = 1000

func (t tool) trace(fs *flag.FlagSet) runner {
	var c commonFlags
	c.define(fs, t.getenv)
	raw := fs.Bool("raw", false, "Show the spans as stored, without the adjustments of the query service.")
	verbose := fs.Bool("v", false, "Show tags, logs and links of each span.")
	maxSpans := fs.Int("max-spans", defaultMaxSpans, "Maximum number of spans shown; the deepest are omitted first.")
	return func(ctx context.Context, in commands.Invocation) error {
		if len(in.Args) != 1 || in.Args[0] == "" {
			return commands.BadUsage("expected one trace ID, got %d", len(in.Args))
		}
		if *maxSpans <= 0 {
			return commands.BadUsage("--max-spans must be above 0, not %d", *maxSpans)
		}
		query := url.Values{}
		if *raw {
			query.Set("raw", "true")
		}
		read := func(body io.Reader) error { return t.showTrace(in, body, *verbose, *maxSpans) }
		if c.json {
			read = t.copyJSON(in)
		}
		return t.withClient(ctx, &c, func(ctx context.Context, api *client) error {
			err := api.get(ctx, "/api/traces/"+url.PathEscape(in.Args[0]), query, read)
			if refused := (*statusError)(nil); errors.As(err, &refused) {
				return fmt.Errorf("trace %s: %w", clean(in.Args[0]), err)
			}
			return err
		})
	}
}

// showTrace prints the trace of a response.
func (t tool) showTrace(in commands.Invocation, body io.Reader, verbose bool, maxSpans int) error {
	r := newReader(body, verbose)
	problems, err := r.answer("data", func() error {
		trace, err := r.trace()
		if err != nil {
			return err
		}
		return output(writeWaterfall(in.Stdout, newForest(trace, maxSpans), screenOf(in.Stdout, t.getenv), t.zone))
	})
	warn(in.Stderr, problems)
	return err
}

func (t tool) services(fs *flag.FlagSet) runner {
	var c commonFlags
	c.define(fs, t.getenv)
	return func(ctx context.Context, in commands.Invocation) error {
		path, query, read := "/api/services", url.Values{}, t.listServices
		switch {
		case len(in.Args) > 1:
			return commands.BadUsage("expected one service, got %d", len(in.Args))
		case len(in.Args) == 1:
			path, read = "/api/operations", t.listOperations
			query.Set("service", in.Args[0])
		}
		return t.withClient(ctx, &c, func(ctx context.Context, api *client) error {
			if c.json {
				return api.get(ctx, path, query, t.copyJSON(in))
			}
			return api.get(ctx, path, query, func(body io.Reader) error { return read(in, body) })
		})
	}
}

// output marks an error as an error of writing the output.
func output(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errOutput, err)
}

// outputWriter is a writer whose errors are marked by output.
type outputWriter struct{ w io.Writer }

// Write implements io.Writer.
func (m outputWriter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	return n, output(err)
}

// warn prints the problems that a response reports.
func warn(stderr io.Writer, problems []string) {
	for _, p := range problems {
		fmt.Fprintln(stderr, "warning:", clean(p))
	}
}

// copyJSON copies a response and adds a line feed. On a terminal, characters that are not printable
// are escaped.
func (t tool) copyJSON(in commands.Invocation) func(io.Reader) error {
	return func(body io.Reader) error {
		out := outputWriter{in.Stdout}
		if !screenOf(in.Stdout, t.getenv).terminal {
			_, err := io.Copy(out, body)
			return errors.Join(err, lineFeed(out))
		}
		w := bufio.NewWriter(out)
		err := copyPrintable(w, body)
		return errors.Join(err, lineFeed(w), w.Flush())
	}
}

func lineFeed(w io.Writer) error {
	_, err := io.WriteString(w, "\n")
	return err
}

func isJSONSpace(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }
