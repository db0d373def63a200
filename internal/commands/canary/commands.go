package canary

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// Commands returns the command.
func Commands() []commands.Command {
	t := tool{env: pipeline.SystemEnv(), getenv: os.Getenv}
	return []commands.Command{{
		Name: "canary", Args: "[--otlp URL] [--query URL] [flags]", Group: "running processes", Setup: t.setup,
		Examples: []string{"tracing canary --once", "tracing canary --interval 10s --listen :14280"},
		Doc:      "write known traces and read them back, continuously or --once; exit code 1 if acknowledged spans are missing or wrong",
	}}
}

// tool holds the outside world of the command.
type tool struct {
	env    pipeline.Env
	getenv func(string) string
}

const (
	tenantHeader    = "X-Tenant"
	otlpPort        = 4318
	queryPort       = 16686
	defaultListen   = "localhost:14280"
	defaultAges     = "10s,1m,10m,1h,24h"
	defaultRemember = 200_000 // two days at one per second
	defaultOnce     = 10      // of --once without a number
	maxIdleConns    = 4       // one connection writes, one reads
)

// flags are the flags of the command.
type flags struct {
	otlp, query, listen, tenant, ages, ignored string
	interval, readAfter, duration              pipeline.Duration
	once                                       count
	remember                                   int
	seed                                       uint64
	header                                     http.Header
}

func (f *flags) define(fs *flag.FlagSet, getenv func(string) string) {
	fs.StringVar(&f.otlp, "otlp", commands.DefaultURL(getenv, commands.VarOTLPURL, otlpPort),
		"URL of the OTLP/HTTP endpoint to write to. gRPC is not supported. $"+commands.VarOTLPURL+" sets the default.")
	fs.StringVar(&f.query, "query", commands.DefaultURL(getenv, commands.VarQueryURL, queryPort),
		"URL of the query service, with its base path if it has one. $"+commands.VarQueryURL+" sets the default.")
	duration := func(to *pipeline.Duration, name string, value time.Duration, usage string) {
		fs.TextVar(to, name, pipeline.Duration(value), usage)
	}
	duration(&f.interval, "interval", time.Second, "Time between traces.")
	duration(&f.readAfter, "read-after", time.Second, "Time from the acknowledgement of a trace to its first reading.")
	fs.StringVar(&f.ages, "ages", defaultAges, "Ages at which a trace is reread. Empty: never. Ignored with --once.")
	duration(&f.duration, "duration", 0, "Time for which traces are written. Then traces that were not read yet are read once. 0: no limit.")
	fs.Var(&f.once, "once", fmt.Sprintf("Number of traces to write and read once before exiting (%d without a number); "+
		"exit code 0 if all are read back. Disables /metrics.", defaultOnce))
	fs.StringVar(&f.listen, "listen", defaultListen, "Address on which to serve /metrics. Empty: not served.")
	fs.StringVar(&f.tenant, "tenant", "", "Tenant of the traces, sent in the header "+strings.ToLower(tenantHeader)+".")
	f.header = commands.HeaderFlag(fs, "Header for all requests")
	fs.IntVar(&f.remember, "remember", defaultRemember,
		"Maximum number of traces that wait to be reread. The oldest are dropped first.")
	fs.StringVar(&f.ignored, "ignore-tags", "",
		"Keys of tags that other programs add on the way to the store, separated by commas. They are not compared.")
	fs.Uint64Var(&f.seed, "seed", 0, "Seed for generating traces. The same seed and time give the same trace. 0: a random seed.")
}

// options converts the flags.
func (f *flags) options(random func() uint64) (Options, error) {
	o := Options{
		OTLP: f.otlp, Query: f.query, Header: f.header, Interval: f.interval.Std(), Ages: []time.Duration{f.readAfter.Std()},
		Remember: f.remember, Duration: f.duration.Std(), Traces: int(f.once), Seed: f.seed, IgnoredTags: items(f.ignored),
	}
	if f.tenant != "" {
		o.Header[tenantHeader] = []string{f.tenant}
	}
	if o.Seed == 0 {
		o.Seed = random()
	}
	if f.once > 0 {
		return o, o.validate()
	}
	for _, text := range items(f.ages) {
		var d pipeline.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil {
			return o, fmt.Errorf("--ages: %w", err)
		}
		o.Ages = append(o.Ages, d.Std())
	}
	return o, o.validate()
}

// count is the value of --once, a flag whose number is optional. Package flag therefore treats the
// number in `--once 20` as an operand.
type count int

// IsBoolFlag allows the flag without a number.
func (*count) IsBoolFlag() bool { return true }

// Set parses the number. Package flag passes "true" if there is none.
func (n *count) Set(text string) error {
	if text == "true" {
		*n = defaultOnce
		return nil
	}
	v, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is not a number of traces", text)
	}
	*n = count(v)
	return nil
}

// String returns the number.
func (n *count) String() string { return strconv.Itoa(int(*n)) }

// takeOperand takes the number for --once, if there is one, and returns the other operands.
func (n *count) takeOperand(operands []string) []string {
	if *n != defaultOnce || len(operands) == 0 {
		return operands
	}
	v, err := strconv.Atoi(operands[0])
	if err != nil {
		return operands
	}
	*n = count(v)
	return operands[1:]
}

// items splits a comma-separated list.
func items(list string) (out []string) {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

func (t tool) setup(fs *flag.FlagSet) func(context.Context, commands.Invocation) error {
	f := &flags{}
	f.define(fs, t.getenv)
	return func(ctx context.Context, in commands.Invocation) error {
		if operands := f.once.takeOperand(in.Args); len(operands) > 0 {
			return commands.BadUsage("unexpected argument %q", operands[0])
		}
		opt, err := f.options(t.env.Rand)
		if err != nil {
			return commands.BadUsage("%w", err)
		}
		if f.once > 0 {
			f.listen = ""
		}
		return t.run(ctx, opt, pipeline.Endpoint(f.listen), in)
	}
}

// run runs a canary and prints its summary.
func (t tool) run(ctx context.Context, opt Options, listen pipeline.Endpoint, in commands.Invocation) (err error) {
	log := newLogger(in.Stderr)
	registry := prometheus.NewRegistry()
	transport := &http.Transport{
		DialContext: t.env.Dial, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: maxIdleConns, TLSHandshakeTimeout: requestTimeout,
	}
	defer transport.CloseIdleConnections()
	c, err := New(opt, Outside{Now: t.env.Now, Transport: transport, Logger: log, Metrics: registry})
	if err != nil {
		return err
	}
	if listen != "" {
		stop, err := t.serveMetrics(ctx, listen, registry, log)
		if err != nil {
			return err
		}
		defer stop()
	}
	log.Info("started canary", zap.String("otlp", opt.OTLP), zap.String("query", opt.Query), zap.Duration("interval", opt.Interval),
		zap.Durations("ages", opt.Ages), zap.Uint64("seed", opt.Seed))
	s := c.Run(ctx)
	fmt.Fprintln(in.Stdout, s.String())
	switch {
	case opt.Traces == 0:
		return s.Lost()
	case ctx.Err() != nil && s.Lost() == nil:
		return ctx.Err()
	}
	return s.Proven()
}

// newLogger returns a logger in the program's format.
func newLogger(w io.Writer) *zap.Logger {
	sink := zapcore.Lock(zapcore.AddSync(w))
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), sink, zap.InfoLevel), zap.AddCaller())
}
