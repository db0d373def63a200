// Package demo implements the command `tracing demo`: it sends the traces of the simulated shop
// of package demo to a running installation, or to one that it starts.
package demo

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/tracing-backend/tracing/internal/demo"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// Commands returns the command, which can also start a preset with the given components.
func Commands(components func() []pipeline.Factory, presets func() []app.Preset) []commands.Command {
	t := tool{env: pipeline.SystemEnv(), getenv: os.Getenv, components: components, presets: presets}
	return []commands.Command{{
		Name: "demo", Args: "[--otlp URL|--all-in-one] [flags]", Group: "running processes", Setup: t.setup,
		Examples: []string{"tracing demo", "tracing demo --all-in-one", "tracing demo --backfill 24h --rate 1 --once"},
		Doc:      "send the traces of a simulated shop of ten services, including a bad version of one; until Ctrl C",
	}}
}

// tool holds the outside world of the command.
type tool struct {
	env        pipeline.Env
	getenv     func(string) string
	components func() []pipeline.Factory
	presets    func() []app.Preset
}

const (
	otlpPort        = 4318
	tenantHeader    = "x-tenant"
	defaultRate     = 5
	maxRate         = 1000
	defaultBackfill = 2 * time.Hour
	maxBackfill     = 7 * 24 * time.Hour
)

// flags are the flags of the command.
type flags struct {
	otlp, tenant, dataDir string
	header                http.Header
	rate                  float64
	seed                  uint64
	backfill, deployAfter pipeline.Duration
	once, allInOne        bool
	settings              []string
}

func (f *flags) define(fs *flag.FlagSet, getenv func(string) string) {
	fs.StringVar(&f.otlp, "otlp", commands.DefaultURL(getenv, commands.VarOTLPURL, otlpPort),
		"URL of the OTLP/HTTP endpoint to send to. gRPC is not supported. $"+commands.VarOTLPURL+" sets the default.")
	fs.BoolVar(&f.allInOne, "all-in-one", false, "Start the preset all-in-one, and send to it.")
	fs.StringVar(&f.dataDir, "data-dir", "",
		"Folder for the files of --all-in-one; by default a temporary folder, which is removed at the end.")
	fs.Func("set", "Setting of --all-in-one, as `path=value`; may be repeated.", func(s string) error {
		f.settings = append(f.settings, s)
		return nil
	})
	fs.Float64Var(&f.rate, "rate", defaultRate, "User requests per second. Each creates about 14 spans.")
	fs.TextVar(&f.backfill, "backfill", pipeline.Duration(defaultBackfill),
		"Time before now for which traces are sent immediately. 0: none; then the overview has nothing to compare with for an hour.")
	fs.TextVar(&f.deployAfter, "deploy-after", pipeline.Duration(0),
		"Time from the first request to the bad version. 0: seven eighths of the backfill, or 2m without one.")
	fs.BoolVar(&f.once, "once", false, "Exit after the backfill.")
	fs.Uint64Var(&f.seed, "seed", 0, "Seed for generating traces. The same seed, time and flags give the same traces. 0: a random seed.")
	fs.StringVar(&f.tenant, "tenant", "", "Tenant of the traces, sent in the header "+tenantHeader+".")
	f.header = commands.HeaderFlag(fs, "Header for all requests")
}

// options converts the flags, including the address.
func (f *flags) options(env pipeline.Env) (o demo.Options, err error) {
	u, err := url.Parse(f.otlp)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "":
		return o, fmt.Errorf("--otlp: %q is not a URL; write http://localhost:4318 (OTLP over HTTP)", pipeline.MaskURLs(f.otlp))
	case !(f.rate > 0 && f.rate <= maxRate):
		return o, fmt.Errorf("--rate must be above 0 and at most %d, not %v", maxRate, f.rate)
	case f.backfill < 0 || f.backfill.Std() > maxBackfill:
		return o, fmt.Errorf("--backfill must be from 0 to %s, not %s", pipeline.Duration(maxBackfill), f.backfill)
	case f.deployAfter < 0:
		return o, fmt.Errorf("--deploy-after must not be negative")
	case f.once && f.backfill == 0:
		return o, fmt.Errorf("--once without a backfill sends nothing; set --backfill")
	case !f.allInOne && (f.dataDir != "" || len(f.settings) > 0):
		return o, fmt.Errorf("--data-dir and --set need --all-in-one")
	}
	o = demo.Options{OTLP: f.otlp, Header: f.header, Rate: f.rate, Seed: f.seed, Backfill: f.backfill.Std(),
		DeployAfter: f.deployAfter.Std(), Once: f.once, Now: env.Now}
	if f.tenant != "" {
		o.Header.Set(tenantHeader, f.tenant)
	}
	if o.Seed == 0 {
		o.Seed = env.Rand()
	}
	return o, nil
}

func (t tool) setup(fs *flag.FlagSet) func(context.Context, commands.Invocation) error {
	f := &flags{}
	f.define(fs, t.getenv)
	return func(ctx context.Context, in commands.Invocation) error {
		if len(in.Args) > 0 {
			return commands.BadUsage("unexpected argument %q", in.Args[0])
		}
		o, err := f.options(t.env)
		if err != nil {
			return commands.BadUsage("%w", err)
		}
		if !f.allInOne {
			return send(ctx, o, in)
		}
		return t.sendToOwn(ctx, f, o, in)
	}
}
