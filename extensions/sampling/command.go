package sampling

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

const (
	exampleURL    = "http://localhost:14268"
	collectorPort = 14268
	// maxExplanation is the maximum size of a response, in bytes.
	maxExplanation = 64 << 20
	// maxErrorBody is the maximum number of bytes shown of an error response.
	maxErrorBody   = 1 << 10
	commandTimeout = 30 * time.Second
)

// Commands returns the subcommands of `tracing sampling`.
func Commands() []commands.Command {
	const group = "sampling strategies"
	t := tool{pipeline.SystemEnv(), os.Getenv}
	return []commands.Command{
		{Name: "sampling explain", Args: "SERVICE [--operation O] [--json] [--url URL] [--header 'NAME: VALUE']", Setup: t.explain,
			Group: group, Doc: "show the sampling strategy of a service, its origin, and the clients that requested it",
			Examples: []string{"tracing sampling explain checkout", "tracing sampling explain checkout --url http://localhost:5778"}},
		{Name: "sampling check", Args: "FILE", Group: group, Setup: t.check, Doc: "check a strategies file for mistakes",
			Examples: []string{"tracing sampling check strategies.json"}},
	}
}

// tool implements the commands. env gives access to the clock and the network.
type tool struct {
	env    pipeline.Env
	getenv func(string) string
}

func (t tool) check(fs *flag.FlagSet) func(context.Context, commands.Invocation) error {
	strict := fs.Bool("strict", false, "Treat warnings as errors.")
	return func(_ context.Context, in commands.Invocation) error {
		if len(in.Args) != 1 {
			return commands.BadUsage("expected one file, got %d", len(in.Args))
		}
		text, err := readFile(in.Args[0], maxFileSize)
		if err != nil {
			return err
		}
		f, err := readStrategies(in.Args[0], text, defaultFile().DefaultProbability)
		if err != nil {
			return err
		}
		if f.warnings != nil {
			if *strict {
				return f.warnings
			}
			for warning := range strings.Lines(f.warnings.Error()) {
				fmt.Fprintf(in.Stderr, "warning: %s\n", strings.TrimSuffix(warning, "\n"))
			}
		}
		for _, ignored := range f.ignored {
			fmt.Fprintf(in.Stderr, "warning: unknown member ignored: %s\n", ignored)
		}
		_, err = fmt.Fprintf(in.Stdout, "strategies are valid: %d services have their own strategy\n", len(f.services))
		return err
	}
}

func (t tool) explain(fs *flag.FlagSet) func(context.Context, commands.Invocation) error {
	operation := fs.String("operation", "", "Root operation.")
	asJSON := fs.Bool("json", false, "Print the response as JSON.")
	base := fs.String("url", commands.DefaultURL(t.getenv, commands.VarSamplingURL, collectorPort),
		"URL of a collector, or of an agent such as http://localhost:5778. $"+commands.VarSamplingURL+" sets the default.")
	header := commands.HeaderFlag(fs, "Header for the request, for example for the tenant")
	return func(ctx context.Context, in commands.Invocation) error {
		if len(in.Args) != 1 {
			return commands.BadUsage("expected one service, got %d", len(in.Args))
		}
		query := url.Values{"service": {in.Args[0]}}
		if *operation != "" {
			query.Set("operation", *operation)
		}
		body, err := t.get(ctx, strings.TrimSuffix(*base, "/"), "/api/sampling/explain?"+query.Encode(), header)
		if err != nil {
			return err
		}
		var x sampling.Explanation // except for the strategy itself, which is only a fileStrategy
		if err := json.Unmarshal(body, &x); err != nil {
			return fmt.Errorf("decoding the response of %s: %w", pipeline.MaskURLs(*base), err)
		}
		if *asJSON {
			_, err = in.Stdout.Write(body)
			return err
		}
		return t.show(in.Stdout, &x)
	}
}

// get sends a GET request and returns the response body. Status codes other than 200 are errors.
func (t tool) get(ctx context.Context, base, path string, header http.Header) ([]byte, error) {
	if u, err := url.Parse(base); err != nil || u.Host == "" {
		return nil, commands.BadUsage("--url: %q is not a URL; expected something like %s", pipeline.MaskURLs(base), exampleURL)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	shown := pipeline.MaskURLs(base)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	transport := &http.Transport{DialContext: t.env.Dial, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req) // does not follow redirects, because headers may hold secrets
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("cannot connect to %s: %w; check that a collector or an agent runs there, or set --url", shown, err)
	}
	if err != nil {
		return nil, fmt.Errorf("requesting an explanation from %s: %w", shown, err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxExplanation))
	if err != nil {
		return nil, fmt.Errorf("reading the response of %s: %w", shown, err)
	}
	if resp.StatusCode != http.StatusOK {
		text := strings.TrimSpace(string(body[:min(len(body), maxErrorBody)]))
		return nil, fmt.Errorf("unexpected response from %s: %s: %s", shown, resp.Status, printable(text))
	}
	return body, nil
}

// show prints an explanation as text.
func (t tool) show(out io.Writer, x *sampling.Explanation) error {
	var b bytes.Buffer
	now := t.env.Now()
	service := cmp.Or(x.Service, "service without a name")
	if x.Operation != "" {
		service += ", operation " + x.Operation
	}
	if x.Strategy == nil {
		fmt.Fprintf(&b, "%s: the strategy is currently not available\n", printable(service))
	} else {
		fmt.Fprintf(&b, "%s: %s %v\n", printable(service), printable(x.Sampler.Type), x.Sampler.Param)
	}
	line := func(key, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-8s %s\n", key, printable(text))
		}
	}
	line("from", strings.TrimSpace(x.Origin.Source+" "+x.Origin.Place))
	line("because", x.Origin.Rule)
	if !x.Origin.Since.IsZero() {
		line("since", fmt.Sprintf("%s (%s ago)", x.Origin.Since.Format(time.RFC3339), now.Sub(x.Origin.Since).Round(time.Second)))
	}
	for problem := range strings.SplitSeq(x.Origin.Problem, "\n") { // problems of a file have one line each
		line("problem", problem)
	}
	if x.Adaptive != nil {
		for _, text := range adaptiveLines(x.Adaptive, now) {
			line("adaptive", text)
		}
	}
	for _, a := range x.Clients {
		answer := a.Answer
		switch {
		case a.Previous != "":
			answer += "; the client keeps " + a.Previous
		case !a.Current && !a.Failed && x.Strategy != nil:
			answer += " (outdated)"
		}
		line("client", fmt.Sprintf("%s ago: %s over %s (%s): %s", now.Sub(a.At).Round(time.Second), a.Address, a.Transport,
			cmp.Or(a.UserAgent, "no User-Agent"), answer))
	}
	for _, note := range x.Notes {
		line("note", note)
	}
	_, err := out.Write(b.Bytes())
	return err
}

// printable replaces characters that are not printable, such as terminal escape sequences.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}
