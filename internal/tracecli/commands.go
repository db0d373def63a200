package tracecli

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
)

// Commands returns the commands.
func Commands() []pipeline.Command {
	t := tool{env: pipeline.SystemEnv(), getenv: os.Getenv, zone: time.Local}
	return []pipeline.Command{
		{Name: "trace", Args: "ID [-v] [--json] [--raw] [--query URL] [flags]", Setup: t.trace,
			Doc: "show a trace of a running query service on the terminal"},
		{Name: "search", Args: "['{ CONDITIONS }'] [--service S] [--tag KEY=VALUE] [--errors] [--from 1h] [flags]", Setup: t.search,
			Doc: "list the traces of a running query service that fit"},
		{Name: "services", Args: "[SERVICE] [--json] [--query URL] [flags]", Setup: t.services,
			Doc: "list the services of a running query service, or the operations of one"},
	}
}

// tool is what the commands need of the outside.
type tool struct {
	env    pipeline.Env
	getenv func(string) string
	zone   *time.Location // of times that are shown
}

type runner = func(context.Context, pipeline.Invocation) error

// defaultMaxSpans is how many spans of a trace are shown.
const defaultMaxSpans = 1000

func (t tool) trace(fs *flag.FlagSet) runner {
	var c common
	c.define(fs)
	raw := fs.Bool("raw", false, "Shows the spans as they are stored, without the service's corrections.")
	verbose := fs.Bool("v", false, "Also tags, logs and links of every span.")
	maxSpans := fs.Int("max-spans", defaultMaxSpans, fmt.Sprintf("How many spans are shown, level by level (%d).", defaultMaxSpans))
	return func(ctx context.Context, in pipeline.Invocation) error {
		if len(in.Args) != 1 || in.Args[0] == "" {
			return pipeline.BadUsage("name one trace by its id, not %d", len(in.Args))
		}
		if *maxSpans <= 0 {
			return pipeline.BadUsage("--max-spans must be above 0, not %d", *maxSpans)
		}
		query := url.Values{}
		if *raw {
			query.Set("raw", "true")
		}
		read := func(body io.Reader) error { return t.showTrace(in, body, *verbose, *maxSpans) }
		if c.json {
			read = t.copyJSON(in)
		}
		return t.ask(ctx, &c, func(ctx context.Context, api *client) error {
			err := api.get(ctx, "/api/traces/"+url.PathEscape(in.Args[0]), query, read)
			if refused := (*statusError)(nil); errors.As(err, &refused) {
				return fmt.Errorf("trace %s: %w", clean(in.Args[0]), err)
			}
			return err
		})
	}
}

// showTrace writes the traces of an answer, which are one.
func (t tool) showTrace(in pipeline.Invocation, body io.Reader, verbose bool, maxSpans int) error {
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
	var c common
	c.define(fs)
	return func(ctx context.Context, in pipeline.Invocation) error {
		path, query, read := "/api/services", url.Values{}, t.listServices
		switch {
		case len(in.Args) > 1:
			return pipeline.BadUsage("name one service, not %d", len(in.Args))
		case len(in.Args) == 1:
			path, read = "/api/operations", t.listOperations
			query.Set("service", in.Args[0])
		}
		return t.ask(ctx, &c, func(ctx context.Context, api *client) error {
			if c.json {
				return api.get(ctx, path, query, t.copyJSON(in))
			}
			return api.get(ctx, path, query, func(body io.Reader) error { return read(in, body) })
		})
	}
}

// output marks an error of writing.
func output(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errOutput, err)
}

// marked is an output whose errors are marked.
type marked struct{ w io.Writer }

// Write implements io.Writer.
func (m marked) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	return n, output(err)
}

// warn writes what an answer says that is wrong with it.
func warn(stderr io.Writer, problems []string) {
	for _, p := range problems {
		fmt.Fprintln(stderr, "warning:", clean(p))
	}
}

// copyJSON writes an answer as it is, with a line feed behind it. On a terminal, what is not printable is escaped as JSON does.
func (t tool) copyJSON(in pipeline.Invocation) func(io.Reader) error {
	return func(body io.Reader) error {
		out := marked{in.Stdout}
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
