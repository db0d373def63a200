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
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

const (
	defaultURL = "http://localhost:14268"
	// maxExplanation is how much is read of an answer, in bytes.
	maxExplanation = 64 << 20
	// maxRefusal is how much is shown of an answer that is none, in bytes.
	maxRefusal     = 1 << 10
	commandTimeout = 30 * time.Second
)

// Commands returns the commands.
func Commands() []pipeline.Command {
	t := tool{pipeline.SystemEnv()}
	return []pipeline.Command{
		{Name: "sampling explain", Args: "SERVICE [--operation O] [--json] [--url URL] [--header 'NAME: VALUE']", Setup: t.explain,
			Doc: "say what clients of a service are told to sample, why, and who asked"},
		{Name: "sampling check", Args: "FILE", Setup: t.check, Doc: "look for mistakes in a strategies file"},
	}
}

// tool is what the commands need of the outside.
type tool struct{ env pipeline.Env }

func (t tool) check(*flag.FlagSet) func(context.Context, pipeline.Invocation) error {
	return func(_ context.Context, in pipeline.Invocation) error {
		if len(in.Args) != 1 {
			return pipeline.BadUsage("name one file, not %d", len(in.Args))
		}
		text, err := readFile(in.Args[0], mostMaxSize)
		if err != nil {
			return err
		}
		f, err := readStrategies(in.Args[0], text)
		if err != nil {
			return err
		}
		for _, ignored := range f.ignored {
			fmt.Fprintf(in.Stderr, "warning: %s means nothing, and is ignored\n", ignored)
		}
		_, err = fmt.Fprintf(in.Stdout, "the strategies are valid: %d services have one of their own\n", len(f.services))
		return err
	}
}

func (t tool) explain(fs *flag.FlagSet) func(context.Context, pipeline.Invocation) error {
	operation := fs.String("operation", "", "Operation with which traces begin.")
	asJSON := fs.Bool("json", false, "Writes the answer as it is.")
	base := fs.String("url", defaultURL,
		"Where clients ask for their strategies: a collector ("+defaultURL+"), or an agent (http://localhost:5778).")
	header := http.Header{}
	fs.Func("header", "A header to send, `Name: value`, such as the tenant's; may be repeated.", func(s string) error {
		name, value, ok := strings.Cut(s, ":")
		if !ok {
			return errors.New("write Name: value")
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		return nil
	})
	return func(ctx context.Context, in pipeline.Invocation) error {
		if len(in.Args) != 1 {
			return pipeline.BadUsage("name one service, not %d", len(in.Args))
		}
		query := url.Values{"service": {in.Args[0]}}
		if *operation != "" {
			query.Set("operation", *operation)
		}
		body, err := t.get(ctx, strings.TrimSuffix(*base, "/"), "/api/sampling/explain?"+query.Encode(), header)
		if err != nil {
			return err
		}
		var x sampling.Explanation // but for the strategy itself, which is only written
		if err := json.Unmarshal(body, &x); err != nil {
			return fmt.Errorf("the answer of %s cannot be read: %w", *base, err)
		}
		if *asJSON {
			_, err = in.Stdout.Write(body)
			return err
		}
		return t.show(in.Stdout, &x)
	}
}

// get returns the body of an answer with status 200.
func (t tool) get(ctx context.Context, base, path string, header http.Header) ([]byte, error) {
	if u, err := url.Parse(base); err != nil || u.Host == "" {
		return nil, pipeline.BadUsage("--url: %q is no URL; write %s", base, defaultURL)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	transport := &http.Transport{DialContext: t.env.Dial, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req) // redirects are not followed, since headers may hold secrets
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing listens at %s (%w): does a collector or an agent run there? --url names another place", base, err)
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", base, err)
	}
	defer resp.Body.Close() //nolint:errcheck // what matters was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxExplanation))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", base, err)
	}
	if resp.StatusCode != http.StatusOK {
		text := strings.TrimSpace(string(body[:min(len(body), maxRefusal)]))
		return nil, fmt.Errorf("%s answers %s: %s", base, resp.Status, printable(text))
	}
	return body, nil
}

// show writes an explanation for people.
func (t tool) show(out io.Writer, x *sampling.Explanation) error {
	var b bytes.Buffer
	now := t.env.Now()
	service := cmp.Or(x.Service, "a service without a name")
	if x.Operation != "" {
		service += ", operation " + x.Operation
	}
	if x.Strategy == nil {
		fmt.Fprintf(&b, "%s: the strategy cannot be found out at the moment\n", printable(service))
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
	for problem := range strings.SplitSeq(x.Origin.Problem, "\n") { // a file has one a line
		line("problem", problem)
	}
	if x.Adaptive != nil {
		for _, text := range adaptiveLines(x.Adaptive, now) {
			line("adaptive", text)
		}
	}
	for _, a := range x.Askers {
		what := a.Told
		switch {
		case a.Kept != "":
			what += "; it keeps " + a.Kept
		case !a.Current && !a.Failed && x.Strategy != nil:
			what += ", which does not hold any more"
		}
		line("asked", fmt.Sprintf("%s ago by %s over %s (%s): %s", now.Sub(a.At).Round(time.Second), a.Address, a.Transport,
			cmp.Or(a.Client, "no User-Agent"), what))
	}
	for _, note := range x.Notes {
		line("note", note)
	}
	_, err := out.Write(b.Bytes())
	return err
}

// printable returns a text without what a terminal would obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}
