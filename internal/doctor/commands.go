package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/client"
)

const (
	defaultTimeout = 10 * time.Second
	tenantHeader   = "X-Tenant"
)

// Commands returns the command.
func Commands() []pipeline.Command {
	return []pipeline.Command{{
		Name: "doctor", Args: "[PRESET] [flags] [--query URL] [--json]", Group: "running processes", Configured: true,
		Doc: "check this host or a running installation, and say what to change; exit code 1 if there is a problem",
		Examples: []string{"tracing doctor", "tracing doctor agent --query http://query.example:16686",
			"tracing doctor --config tracing.yaml --skip spans --json"},
		Setup: setup,
	}}
}

// flags are those of the command.
type flags struct {
	query, tenant, cert, key string
	certificates             []tls.Certificate // of cert and key
	header                   http.Header
	timeout                  pipeline.Duration
	skip                     []string
	json                     bool
}

func (f *flags) define(fs *flag.FlagSet) {
	fs.StringVar(&f.query, "query", "", "URL of the query API that reads test spans back, with its base path if it has one. "+
		"The default is $"+pipeline.VarQueryURL+", or the query extension of the configuration.")
	fs.StringVar(&f.tenant, "tenant", "", "Tenant of the test spans, sent in the header "+strings.ToLower(tenantHeader)+".")
	f.header = pipeline.HeaderFlag(fs, "Header for requests to receivers and the query API")
	fs.StringVar(&f.cert, "cert", "", "PEM file of the client certificate for receivers and the query API.")
	fs.StringVar(&f.key, "key", "", "PEM file of the private key for --cert.")
	fs.TextVar(&f.timeout, "timeout", pipeline.Duration(defaultTimeout), "Maximum duration of each check.")
	fs.Func("skip", "Check to leave out; may be repeated. The checks are "+described()+".", f.addSkip)
	fs.BoolVar(&f.json, "json", false, "Print the report as JSON.")
}

func names() []string {
	var out []string
	for _, c := range checks() {
		out = append(out, c.name)
	}
	return out
}

// described returns the checks with their descriptions.
func described() string {
	var out []string
	for _, c := range checks() {
		out = append(out, c.name+" ("+c.doc+")")
	}
	return strings.Join(out, ", ")
}

func (f *flags) addSkip(name string) error {
	if !slices.Contains(names(), name) {
		return fmt.Errorf("unknown check %q; the checks are %s", name, strings.Join(names(), ", "))
	}
	f.skip = append(f.skip, name)
	return nil
}

// validate checks the values, and reads the client certificate.
func (f *flags) validate() error {
	if f.timeout <= 0 {
		return errors.New("--timeout must be above 0")
	}
	if f.cert != "" || f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return fmt.Errorf("--cert and --key: %w", err)
		}
		f.certificates = []tls.Certificate{pair}
	}
	if f.query == "" {
		return nil
	}
	if err := client.ValidateURL("", f.query); err != nil {
		return fmt.Errorf("--query: %w", err)
	}
	return nil
}

func setup(fs *flag.FlagSet) func(context.Context, pipeline.Invocation) error {
	f := &flags{}
	f.define(fs)
	return func(ctx context.Context, in pipeline.Invocation) error {
		f.query = cmp.Or(f.query, os.Getenv(pipeline.VarQueryURL))
		if err := f.validate(); err != nil {
			return pipeline.BadUsage("%w", err)
		}
		if f.tenant != "" {
			f.header[tenantHeader] = []string{f.tenant}
		}
		config, ok := in.Configuration.(*app.Config)
		if !ok {
			return errors.New("configuration is not the one of this program")
		}
		return f.examine(ctx, config, in)
	}
}

// examine runs the checks and prints the report. Its error has the number of problems.
func (f *flags) examine(ctx context.Context, config *app.Config, in pipeline.Invocation) error {
	x := newExamination(config, in.Build, f)
	defer x.close()
	report := x.run(ctx, checks(), f.skip)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := f.print(in.Stdout, &report); err != nil {
		return err
	}
	if n := report.count(Problem); n > 0 {
		return fmt.Errorf("found %s", counted(n, "problem"))
	}
	return nil
}

func (f *flags) print(w io.Writer, r *Report) error {
	if !f.json {
		return r.writeText(w)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
