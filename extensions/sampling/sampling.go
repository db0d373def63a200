// Package sampling is the extension "sampling": it decides which traces clients sample, and tells those that ask on port 5778 or, through
// the receiver "native", on 14268 and 14250.
//
// Strategies come from a file or URL, as in a collector, from what collectors see (adaptive*.go, and package adaptive, which calculates), or
// from a collector, as in an agent. What comes from where, and who was told, is what an explanation says.
package sampling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// The endpoints that clients expect.
const (
	defaultHTTPEndpoint = "localhost:5778"
	defaultGRPCEndpoint = "localhost:5779"
)

// Config is the configuration of the extension.
type Config struct {
	File     pipeline.Optional[FileConfig]        `yaml:"file" doc:"Strategies of a file or URL."`
	Remote   pipeline.Optional[RemoteConfig]      `yaml:"remote" doc:"Strategies of a collector, which is asked over gRPC."`
	Adaptive pipeline.Optional[AdaptiveConfig]    `yaml:"adaptive" doc:"Strategies that follow from the traces that collectors see, so that so many are sampled as are wanted."`
	HTTP     pipeline.Optional[server.HTTPConfig] `yaml:"http" doc:"Where clients ask over HTTP: an agent's port."`
	GRPC     pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"Where clients ask over gRPC, besides the receiver native."`
	Asked    int                                  `yaml:"remembered_services" doc:"Of how many services, those asked for last, is remembered who asked and what the answer was; 0: none."`
}

func defaults() Config {
	return Config{
		File:     pipeline.Absent(defaultFile()),
		Remote:   pipeline.Absent(defaultRemote()),
		Adaptive: pipeline.Absent(defaultAdaptive()),
		HTTP:     pipeline.Absent(server.DefaultHTTPConfig(defaultHTTPEndpoint)),
		GRPC:     pipeline.Absent(server.DefaultGRPCConfig(defaultGRPCEndpoint)),
		Asked:    1000,
	}
}

// mostAsked bounds remembered_services: each takes up to 8 KiB.
const mostAsked = 100_000

// Validate reports mistakes between keys.
func (c *Config) Validate() error {
	var errs []error
	_, file := c.File.Get()
	_, remote := c.Remote.Get()
	_, adaptive := c.Adaptive.Get()
	switch {
	case !file && !remote && !adaptive:
		errs = append(errs, pipeline.BadKey("", "no source of strategies: write file, remote or adaptive; "+
			"an empty file: {} has one probability for all services"))
	case file && remote:
		errs = append(errs, pipeline.BadKey("remote", "file and remote exclude each other: strategies have one source; delete one"))
	case adaptive && (file || remote):
		errs = append(errs, pipeline.BadKey("adaptive",
			"adaptive, file and remote exclude each other: strategies have one source; delete the others"))
	}
	if c.Asked < 0 || c.Asked > mostAsked {
		errs = append(errs, pipeline.BadKey("remembered_services", "must be from 0 to %d, not %d", mostAsked, c.Asked))
	}
	return errors.Join(errs...)
}

// Lacks implements pipeline.Limited: only what samples adaptively has a use for what is seen. In an agent that asks a collector, it is the
// collector that counts: SAMPLING_CONFIG_TYPE may be set for all processes of a host.
func (c *Config) Lacks(want reflect.Type) error {
	_, adaptive := c.Adaptive.Get()
	_, remote := c.Remote.Get()
	if !adaptive && !remote && want == reflect.TypeFor[sampling.Observer]() {
		return errors.New("it has no block adaptive")
	}
	return nil
}

// Factory makes the extension, type sampling.
func Factory() pipeline.Factory {
	return pipeline.Extension("sampling", defaults, newExtension).
		Doc("Decides which traces clients sample, and tells them: strategies from a file, a URL or a collector, " +
			"or such that a wanted number of traces is sampled.")
}

// source is where strategies come from. decide may wait for somebody else to say. With an error comes a decision without a strategy, which
// has all else that there is to say.
type source interface {
	pipeline.Starter
	pipeline.Stopper
	decide(ctx context.Context, tenant, service string) (decision, error)
}

// decision is the strategy of a service as a source has it.
type decision struct {
	*entry
	source  string // see sampling.Origin
	problem string
}

func (d decision) origin() sampling.Origin {
	return sampling.Origin{Source: d.source, Place: d.place, Rule: d.rule, Since: d.since, Problem: d.problem}
}

type extension struct {
	set       pipeline.Settings
	source    source
	observer  sampling.Observer // nil: nobody wants to know what is sampled
	listeners server.Listeners
	askers    *askers
	requests  *prometheus.CounterVec
}

var (
	_ pipeline.Starter   = (*extension)(nil)
	_ pipeline.Stopper   = (*extension)(nil)
	_ pipeline.Addressed = (*extension)(nil)
	_ sampling.Provider  = (*extension)(nil)
	_ sampling.Explainer = (*extension)(nil)
	_ sampling.Observer  = (*extension)(nil)
)

func newExtension(set pipeline.Settings, c Config) (*extension, error) {
	e := &extension{set: set, listeners: server.Listeners{}, askers: newAskers(c.Asked)}
	e.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_sampling_requests_total",
		Help: "Questions of clients for their strategy."}, []string{"transport", "result"})
	for _, transport := range []string{"http", "legacy", "grpc"} { // they are there from the start
		e.requests.WithLabelValues(transport, "ok")
		e.requests.WithLabelValues(transport, "err")
	}
	err := set.Metrics.Register(e.requests)
	if err == nil {
		err = e.connect(c)
	}
	if err == nil {
		err = e.listen(c)
	}
	return e, err
}

// connect makes the source.
func (e *extension) connect(c Config) (err error) {
	if file, ok := c.File.Get(); ok {
		e.source, err = newFileSource(e.set, file)
		return err
	}
	if cfg, ok := c.Adaptive.Get(); ok {
		s, err := newAdaptiveSource(e.set, cfg)
		if err != nil {
			return err
		}
		e.source, e.observer = s, s.counter
		return nil
	}
	remote, _ := c.Remote.Get()
	e.source, err = newRemoteSource(e.set, remote)
	return err
}

// Start gets the strategies, and then answers.
func (e *extension) Start(ctx context.Context) error {
	if err := e.source.Start(ctx); err != nil {
		return err
	}
	if err := e.listeners.Start(ctx); err != nil {
		return errors.Join(err, e.source.Stop(ctx))
	}
	return nil
}

// Stop answers no more.
func (e *extension) Stop(ctx context.Context) error {
	return errors.Join(e.listeners.Stop(ctx), e.source.Stop(ctx))
}

// Addr returns the address of listener `http` or `grpc`.
func (e *extension) Addr(listener string) string { return e.listeners.Addr(listener) }

// Strategy implements sampling.Provider.
func (e *extension) Strategy(ctx context.Context, q sampling.Question) (sampling.Answer, error) {
	d, err := e.source.decide(ctx, q.Tenant, q.Service)
	told, result := err, "ok"
	if err == nil && q.Asker.Transport == sampling.TransportLegacy {
		told = d.strategy.CheckLegacy() // not every strategy has that form; who asks for it is told that
	}
	if told != nil {
		result = "err"
	}
	e.requests.WithLabelValues(cmp.Or(q.Asker.Transport, "other"), result).Inc()
	e.askers.remember(q, e.set.Env.Now(), d.strategy, told)
	if err != nil {
		return sampling.Answer{}, err
	}
	return sampling.Answer{Strategy: d.strategy, Origin: d.origin()}, nil
}

// Observe implements sampling.Observer. Only adaptive sampling has a use for it.
func (e *extension) Observe(tenant string, roots []sampling.Root) {
	if e.observer != nil {
		e.observer.Observe(tenant, roots)
	}
}

// Explain implements sampling.Explainer.
func (e *extension) Explain(ctx context.Context, tenant, service, operation string) (*sampling.Explanation, error) {
	d, err := e.source.decide(ctx, tenant, service)
	out := &sampling.Explanation{Service: service, Operation: operation, Strategy: d.strategy, Origin: d.origin(),
		Askers: e.askers.of(tenant, service, d.strategy)}
	if err != nil {
		out.Origin.Problem = err.Error()
		out.Notes = notes(out)
		return out, nil
	}
	out.Sampler = d.strategy.Sampler(operation)
	if o, ok := d.operations[operation]; ok {
		out.Origin.Place, out.Origin.Rule = o.place, o.rule
	}
	if a, ok := e.source.(*adaptiveSource); ok {
		if out.Adaptive, err = a.explain(ctx, tenant, service, operation); err != nil {
			return nil, fmt.Errorf("explaining %q: %w", service, err)
		}
	}
	out.Notes = notes(out)
	return out, nil
}

// notes are what is easily overlooked of an explanation.
func notes(x *sampling.Explanation) []string {
	all := []string{"The service in which a trace begins decides for the whole trace; the services behind it follow."}
	if x.Sampler.Type == "ratelimiting" {
		all = append(all, "The limit is one of each process of the service, not of all together.")
	}
	if x.Sampler.LowerBound > 0 {
		all = append(all, fmt.Sprintf("Of each operation, and in each process, %.3g traces per second are sampled in any case.",
			x.Sampler.LowerBound))
	}
	if len(x.Askers) == 0 {
		return append(all, "Nobody has asked for this service here since the process started: "+
			"its clients ask elsewhere, or sample as they are configured themselves.")
	}
	switch last := x.Askers[0]; {
	case last.Failed:
		all = append(all, "Clients that are told an error keep what they were told before.")
	case !last.Current && x.Strategy != nil:
		all = append(all, "What holds now is not what was told last. Clients ask every 60 seconds, unless they are configured otherwise.")
	}
	return all
}
