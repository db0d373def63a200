// Package doctor implements the command `tracing doctor`. It checks a host before the program
// starts, or a running installation, and says what to change.
//
// A check is a function in the list that the function checks returns. It reads the configuration
// through an examination and returns findings. Checks change nothing, except that they write test
// spans to a running installation and a small temporary file to the data folder. Each check ends
// within a time limit.
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
	"github.com/tracing-backend/tracing/pipeline/commands"
)

const (
	defaultTimeout = 10 * time.Second
	tenantHeader   = "X-Tenant"
)

// Commands returns the command.
func Commands() []commands.Command {
	return []commands.Command{{
		Name: "doctor", Args: "[PRESET] [flags] [--query URL] [--json]", Group: "running processes", Configured: true,
		Doc: "check this host or a running installation, and say what to change; exit code 1 if there is a problem",
		Examples: []string{"tracing doctor", "tracing doctor agent --query http://query.example:16686",
			"tracing doctor --config tracing.yaml --skip spans --json"},
		Setup: setup,
	}}
}

// flags are the flags of the command.
type flags struct {
	query, tenant, cert, key string
	certificates             []tls.Certificate // of cert and key
	header                   http.Header
	timeout                  pipeline.Duration
	skip                     []string
	json                     bool
}

func (f *flags) define(fs *flag.FlagSet) {
	fs.StringVar(&f.query, "query", "", "URL of the query service that reads test spans back, with its base path if it has one. "+
		"The default is $"+commands.VarQueryURL+", or the query extension of the configuration.")
	fs.StringVar(&f.tenant, "tenant", "", "Tenant of the test spans, sent in the header "+strings.ToLower(tenantHeader)+".")
	f.header = commands.HeaderFlag(fs, "Header for requests to receivers and the query service")
	fs.StringVar(&f.cert, "cert", "", "PEM file of the client certificate for receivers and the query service.")
	fs.StringVar(&f.key, "key", "", "PEM file of the private key for --cert.")
	fs.TextVar(&f.timeout, "timeout", pipeline.Duration(defaultTimeout), "Maximum duration of each check.")
	fs.Func("skip", "Check to skip; may be repeated. The checks are "+described()+".", f.addSkip)
	fs.BoolVar(&f.json, "json", false, "Print the report as JSON.")
}

func names() []string {
	var out []string
	for _, c := range checks() {
		out = append(out, c.name)
	}
	return out
}

// described returns the names and descriptions of the checks.
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

func setup(fs *flag.FlagSet) func(context.Context, commands.Invocation) error {
	f := &flags{}
	f.define(fs)
	return func(ctx context.Context, in commands.Invocation) error {
		f.query = cmp.Or(f.query, os.Getenv(commands.VarQueryURL))
		if err := f.validate(); err != nil {
			return commands.BadUsage("%w", err)
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
func (f *flags) examine(ctx context.Context, config *app.Config, in commands.Invocation) error {
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

// check is one entry of the table.
type check struct {
	name string
	doc  string // noun phrase for the help text
	run  func(ctx context.Context, x *examination) []Finding
}

// checks returns all checks in the order of the report.
func checks() []check {
	return []check{
		{"configuration", "files and folders that the configuration names, and its warnings", checkConfiguration},
		{"ports", "listeners are free before the start, and respond afterwards", checkPorts},
		{"certificates", "certificate files and their expiry", checkCertificates},
		{"clock", "synchronization of the clock, and its difference from other hosts", checkClock},
		{"fsync", "time to write to the folders of spans durably", checkFsync},
		{"disk", "free disk space for retention and queues", checkDisk},
		{"files", "limit on open files", checkFiles},
		{"memory", "memory that the configuration needs", checkMemory},
		{"udp", "kernel buffers of UDP listeners", checkUDP},
		{"connections", "next hops and stores: DNS, TCP, TLS and their response", checkConnections},
		{"clickhouse", "tables and settings of ClickHouse", checkClickHouse},
		{"kafka", "brokers, topics, partitions and replicas of Kafka", checkKafka},
		{"versions", "versions of the program, the running process and stored files", checkVersions},
		{"sampling", "responses to requests for sampling strategies", checkSampling},
		{"spans", "a test span through each receiver, read back through the query service", checkSpans},
	}
}

// graceTime is the time for a check to return after its context has ended.
const graceTime = time.Second

// run runs the checks that are not skipped, one after another, so that they do not disturb each
// other's measurements.
func (x *examination) run(ctx context.Context, all []check, skip []string) Report {
	x.detect(ctx)
	r := Report{Version: x.build.Version, Running: x.process.running, Hangs: x.process.hangs != ""}
	for _, c := range all {
		var findings []Finding
		if slices.Contains(skip, c.name) {
			findings = []Finding{newFinding("", Skipped, "left out with --skip")}
		} else {
			findings = x.runOne(ctx, c)
		}
		result := newResult(c.name, findings)
		r.Checks = append(r.Checks, result)
		r.Verdict = max(r.Verdict, result.Verdict)
	}
	return r
}

// runOne runs a check within the time limit. It abandons a check that does not return, for example
// because the disk does not respond.
func (x *examination) runOne(ctx context.Context, c check) []Finding {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	done := make(chan []Finding, 1)
	go func() { done <- c.run(ctx, x) }()
	select {
	case findings := <-done:
		return findings
	case <-ctx.Done():
	}
	grace := time.NewTimer(graceTime)
	defer grace.Stop()
	select {
	case findings := <-done:
		return findings
	case <-grace.C:
		return []Finding{newFinding("", Problem, "no result within %s", x.timeout).
			advise("look for a disk, a name server or a host that does not respond; run with a longer --timeout")}
	}
}

// absence says why a check that needs the process is skipped.
func (p process) absence() string {
	if p.hangs != "" {
		return "process does not respond"
	}
	return "process is not running"
}

// hangFinding is the only finding about a process that does not respond.
func (p process) hangFinding() Finding {
	f := newFinding("", Problem, "%s", p.hangs)
	if p.pid == 0 {
		return f.advise("look at its log, and at the load of the host; restart it")
	}
	return f.advise("look at its log, and at the load of the host; \"kill -CONT %d\" continues a stopped process; "+
		"\"kill -QUIT %d\" ends it and writes what it was doing to its log", p.pid, p.pid)
}

// String describes the process for findings.
func (p process) String() string {
	if p.pid > 0 {
		return fmt.Sprintf("process %d", p.pid)
	}
	return "running process"
}
