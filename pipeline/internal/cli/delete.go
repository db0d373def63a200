package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// defaultDeleteTimeout is the default of --timeout. To count the deleted spans, the store may read
// most of its data before it responds. The value is above the default operation_timeout of the
// `admin` extension, so that the response arrives even if a deletion times out.
const defaultDeleteTimeout = 11 * time.Minute

// maxDeleteReply is the maximum number of bytes to read from a response.
const maxDeleteReply = 64 << 10

// deleteFlags are the flags of `tracing delete`.
type deleteFlags struct {
	variable                                string // see adminVariable
	admin, store, tenant, service, from, to string
	traces                                  stringList
	header                                  http.Header
	timeout                                 time.Duration
	yes, dryRun                             bool
	flags                                   *flag.FlagSet
}

func (d *deleteFlags) define(fs *flag.FlagSet) {
	d.flags = fs
	fs.StringVar(&d.admin, "admin", "", "URL of the admin API of the process. The default is the address in the configuration, or $"+
		commands.VarAdminURL+" if neither PRESET nor --config is given.")
	fs.StringVar(&d.store, "store", "disk", "ID of the exporter to delete from.")
	fs.StringVar(&d.tenant, "tenant", "", "Tenant whose spans are deleted. Empty: the default tenant.")
	fs.Var(&d.traces, "trace", "ID of a trace to delete. May be repeated.")
	fs.StringVar(&d.service, "service", "", "Service whose spans are deleted.")
	fs.StringVar(&d.from, "from", "", "Delete only spans that start at or after this time, such as 2026-11-21T17:00:00Z.")
	fs.StringVar(&d.to, "to", "", "Delete only spans that start at or before this time.")
	d.header = commands.HeaderFlag(fs, "Header for the request")
	fs.DurationVar(&d.timeout, "timeout", defaultDeleteTimeout, "Maximum time to wait for the response.")
	fs.BoolVar(&d.yes, "yes", false, "Do not ask for confirmation.")
	fs.BoolVar(&d.dryRun, "dry-run", false, "Count the spans that would be deleted, and delete nothing.")
}

// deletion is the request to the admin extension. Package storeadmin handles it.
type deletion struct {
	Tenant  string     `json:"tenant,omitempty"`
	Traces  []string   `json:"traces,omitempty"`
	Service string     `json:"service,omitempty"`
	From    *time.Time `json:"from,omitempty"`
	To      *time.Time `json:"to,omitempty"`
	DryRun  bool       `json:"dry_run,omitempty"`
}

func (c *command) deleteSpans(ctx context.Context) int {
	c.deletion.variable = c.adminVariable()
	d, err := c.deletion.request()
	if err != nil {
		return c.misuse(c.chosen, err)
	}
	target, err := c.deletion.target(c.load)
	if err != nil {
		return c.misuse(c.chosen, err)
	}
	ask := !c.deletion.yes && term.IsTerminal(int(os.Stdin.Fd()))
	if c.deletion.dryRun || ask {
		spans, err := c.requestDeletion(ctx, target, d, true)
		if err != nil && !c.deletion.dryRun {
			err = fmt.Errorf("counting the spans to delete: %w; --yes deletes without counting", err)
		}
		if err != nil {
			return c.fail(err)
		}
		if c.deletion.dryRun {
			fmt.Fprintf(c.stdout, "%d spans would be deleted\n", spans)
			return exitOK
		}
		fmt.Fprintf(c.stderr, "delete %d spans (%s) from %s? This cannot be undone. [y/N] ", spans, d, pipeline.MaskURLs(target))
		if !confirmed(os.Stdin) {
			return c.fail(errors.New("nothing was deleted"))
		}
	}
	spans, err := c.requestDeletion(ctx, target, d, false)
	if err != nil {
		return c.fail(err)
	}
	fmt.Fprintf(c.stdout, "%d spans deleted\n", spans)
	return exitOK
}

// request returns the deletion that the flags describe, after all checks that do not need the
// store.
func (d *deleteFlags) request() (*deletion, error) {
	if err := d.checkEmpty(); err != nil {
		return nil, err
	}
	if d.timeout <= 0 {
		return nil, errors.New("--timeout must be above 0")
	}
	r := &deletion{Tenant: d.tenant, Traces: d.traces, Service: d.service}
	for _, bound := range []struct {
		name, text string
		to         **time.Time
	}{{"from", d.from, &r.From}, {"to", d.to, &r.To}} {
		if bound.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, bound.text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %q is not a time; write it as 2026-11-21T17:00:00Z", bound.name, bound.text)
		}
		*bound.to = &at
	}
	ranged := r.From != nil || r.To != nil
	switch {
	case len(r.Traces) > 0 && (r.Service != "" || ranged):
		return nil, errors.New("--trace deletes whole traces; leave out --service, --from and --to")
	case len(r.Traces) == 0 && r.Service == "" && !ranged:
		return nil, errors.New("nothing to delete; give --trace, --service, or --from and --to")
	}
	return r, nil
}

// checkEmpty refuses empty flag values, except for --tenant. They are usually mistakes in a script,
// which must not delete more than intended.
func (d *deleteFlags) checkEmpty() (err error) {
	d.flags.Visit(func(f *flag.Flag) {
		if f.Value.String() == "" && slices.Contains([]string{"service", "from", "to", "trace"}, f.Name) {
			err = fmt.Errorf("--%s has no value", f.Name)
		}
	})
	return err
}

// String describes the deletion.
func (r *deletion) String() string {
	var b strings.Builder
	switch {
	case len(r.Traces) > 0:
		fmt.Fprintf(&b, "all spans of %d traces", len(r.Traces))
	case r.Service != "":
		fmt.Fprintf(&b, "all spans of service %q", r.Service)
	default:
		b.WriteString("all spans")
	}
	if r.From != nil {
		fmt.Fprintf(&b, " from %s", r.From.Format(time.RFC3339Nano))
	}
	if r.To != nil {
		fmt.Fprintf(&b, " to %s", r.To.Format(time.RFC3339Nano))
	}
	if r.Tenant != "" {
		fmt.Fprintf(&b, " of tenant %q", r.Tenant)
	}
	return b.String()
}

// target returns the URL of the store's route: below --admin, or at the address at which a process
// with the given configuration listens.
func (d *deleteFlags) target(load config.Options) (string, error) {
	id, err := pipeline.ParseID(d.store)
	if err != nil {
		return "", fmt.Errorf("--store: %w", err)
	}
	base := cmp.Or(d.admin, d.variable)
	if base == "" {
		cfg, err := config.Load(load)
		if err != nil {
			return "", fmt.Errorf("give --admin URL or the configuration of the process: %w", err)
		}
		if base, err = cfg.AdminEndpoint(); err != nil {
			return "", errors.New("configuration has no admin extension; give --admin URL")
		}
	}
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("--admin: %q is not an address such as http://localhost:14269", pipeline.MaskURLs(base))
	}
	return u.JoinPath("exporters", id.String(), "delete").String(), nil
}

// requestDeletion asks a running process to delete or, in a dry run, count spans. It returns their
// number.
func (c *command) requestDeletion(ctx context.Context, target string, d *deletion, dryRun bool) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.deletion.timeout)
	defer cancel()
	request := *d
	request.DryRun = dryRun
	body, err := json.Marshal(&request)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	maps.Copy(req.Header, c.deletion.header)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which may contain secrets
	}
	if errors.Is(err, context.DeadlineExceeded) && dryRun {
		return 0, errors.New("no response within --timeout; nothing was deleted")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return 0, errors.New("no response within --timeout; the deletion may have taken effect")
	}
	if err != nil {
		return 0, fmt.Errorf("cannot reach %s; check that the process is running: %w", pipeline.MaskURLs(target), err)
	}
	defer resp.Body.Close() //nolint:errcheck // everything needed has been read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxDeleteReply))
	if err != nil {
		return 0, fmt.Errorf("reading the response: %w", err)
	}
	var reply struct {
		Spans *int   `json:"spans"`
		Error string `json:"error"`
	}
	switch err := json.Unmarshal(raw, &reply); {
	case err == nil && resp.StatusCode == http.StatusOK && reply.Spans != nil:
		return *reply.Spans, nil
	case err == nil && reply.Error != "":
		return 0, fmt.Errorf("%s: %s", resp.Status, reply.Error)
	}
	return 0, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(raw)))
}

// confirmed reads one line and reports whether it is "y" or "yes".
func confirmed(in io.Reader) bool {
	line, _ := bufio.NewReader(in).ReadString('\n') // a line that ends with the input counts
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}
