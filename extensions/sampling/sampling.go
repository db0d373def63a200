// Package sampling implements the `sampling` extension. It serves sampling strategies to clients.
// The strategies come from a file or URL (file.go) or another collector (remote.go), or are
// calculated from observed traffic (adaptive.go and package adaptive).
//
// Clients request strategies on port 5778, or on 14268 and 14250 through the `native` receiver. An
// explanation says where a strategy comes from, and which clients requested it.
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

// Default endpoints.
const (
	defaultHTTPEndpoint = "localhost:5778"
	defaultGRPCEndpoint = "localhost:5779"
)

// Config is the configuration of the extension.
type Config struct {
	File               pipeline.Optional[FileConfig]        `yaml:"file" doc:"Strategies from a file or URL."`
	Remote             pipeline.Optional[RemoteConfig]      `yaml:"remote" doc:"Strategies from a collector, over gRPC."`
	Adaptive           pipeline.Optional[AdaptiveConfig]    `yaml:"adaptive" doc:"Strategies calculated from observed traffic, with a target number of sampled traces per second for each root operation."`
	HTTP               pipeline.Optional[server.HTTPConfig] `yaml:"http" doc:"HTTP server for sampling clients, as in an agent."`
	GRPC               pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"gRPC server for sampling clients, in addition to the one of the native receiver."`
	RememberedServices int                                  `yaml:"remembered_services" doc:"Number of recently queried services whose clients and strategies tracing sampling explain shows. 0 disables this."`
}

func defaults() Config {
	return Config{
		File:               pipeline.Absent(defaultFile()),
		Remote:             pipeline.Absent(defaultRemote()),
		Adaptive:           pipeline.Absent(defaultAdaptive()),
		HTTP:               pipeline.Absent(server.DefaultHTTPConfig(defaultHTTPEndpoint)),
		GRPC:               pipeline.Absent(server.DefaultGRPCConfig(defaultGRPCEndpoint)),
		RememberedServices: 1000,
	}
}

// maxRememberedServices is the upper limit of remembered_services: each service takes up to 8 KiB.
const maxRememberedServices = 100_000

// Validate reports invalid combinations of keys.
func (c *Config) Validate() error {
	var errs []error
	_, file := c.File.Get()
	_, remote := c.Remote.Get()
	_, adaptive := c.Adaptive.Get()
	switch {
	case !file && !remote && !adaptive:
		errs = append(errs, pipeline.BadKey("", "no source of strategies; configure file, remote or adaptive "+
			"(an empty file: {} gives all services the same probability)"))
	case file && remote:
		errs = append(errs, pipeline.BadKey("remote", "file and remote cannot be combined; delete one of them"))
	case adaptive && (file || remote):
		errs = append(errs, pipeline.BadKey("adaptive",
			"adaptive cannot be combined with file or remote; keep one of them"))
	}
	if c.RememberedServices < 0 || c.RememberedServices > maxRememberedServices {
		errs = append(errs, pipeline.BadKey("remembered_services", "must be from 0 to %d, not %d", maxRememberedServices,
			c.RememberedServices))
	}
	return errors.Join(errs...)
}

// Lacks implements pipeline.Limited. Only adaptive sampling uses observed traces. With `remote`,
// observation is allowed but has no effect, because SAMPLING_CONFIG_TYPE may be set for all
// processes of a host; the collector counts traces.
func (c *Config) Lacks(want reflect.Type) error {
	_, adaptive := c.Adaptive.Get()
	_, remote := c.Remote.Get()
	if !adaptive && !remote && want == reflect.TypeFor[sampling.Observer]() {
		return errors.New("adaptive block is missing")
	}
	return nil
}

// Factory returns the factory for the `sampling` extension.
func Factory() pipeline.Factory {
	return pipeline.Extension("sampling", defaults, newExtension).
		Doc("Serves sampling strategies to clients, from a file, a URL, a collector, or adaptive sampling.")
}

// source provides strategies. decide may block on a remote collector. If decide returns an error,
// the decision has no strategy, but all other fields are set.
type source interface {
	pipeline.Starter
	pipeline.Stopper
	decide(ctx context.Context, tenant, service string) (decision, error)
}

// decision is the strategy of a service with its origin.
type decision struct {
	entry   *entry
	source  string // see sampling.Origin.Source
	problem string
}

func (d decision) origin() sampling.Origin {
	return sampling.Origin{Source: d.source, Place: d.entry.place, Rule: d.entry.rule, Since: d.entry.since, Problem: d.problem}
}

type extension struct {
	set       pipeline.Settings
	source    source
	observer  sampling.Observer // nil unless sampling is adaptive
	listeners server.Listeners
	clients   *recentClients
	requests  *prometheus.CounterVec
}

var (
	_ pipeline.Starter     = (*extension)(nil)
	_ pipeline.Stopper     = (*extension)(nil)
	_ pipeline.Replaceable = (*extension)(nil)
	_ pipeline.Addressed   = (*extension)(nil)
	_ sampling.Provider    = (*extension)(nil)
	_ sampling.Explainer   = (*extension)(nil)
	_ sampling.Lister      = (*extension)(nil)
	_ sampling.Observer    = (*extension)(nil)
)

func newExtension(set pipeline.Settings, c Config) (*extension, error) {
	e := &extension{set: set, listeners: server.Listeners{}, clients: newRecentClients(c.RememberedServices)}
	e.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_sampling_requests_total",
		Help: "Strategy requests of clients."}, []string{"transport", "result"})
	for _, transport := range []string{"http", "legacy", "grpc"} { // export zero values from the start
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

// connect creates the source.
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

// Start starts the source, then the listeners.
func (e *extension) Start(ctx context.Context) error {
	if err := e.source.Start(ctx); err != nil {
		return err
	}
	if err := e.listeners.Start(ctx); err != nil {
		return errors.Join(err, e.source.Stop(ctx))
	}
	return nil
}

// HandOver hands over the listeners.
func (e *extension) HandOver(ctx context.Context) { e.listeners.HandOver(ctx) }

// Stop stops the listeners, then the source.
func (e *extension) Stop(ctx context.Context) error {
	return errors.Join(e.listeners.Stop(ctx), e.source.Stop(ctx))
}

// Addr returns the address of listener `http` or `grpc`.
func (e *extension) Addr(listener string) string { return e.listeners.Addr(listener) }

// Strategy implements sampling.Provider.
func (e *extension) Strategy(ctx context.Context, r sampling.Request) (sampling.Answer, error) {
	d, err := e.source.decide(ctx, r.Tenant, r.Service)
	answerErr, result := err, "ok"
	if err == nil && r.Client.Transport == sampling.TransportLegacy {
		answerErr = d.entry.strategy.CheckLegacy() // the legacy form cannot represent every strategy
	}
	if answerErr != nil {
		result = "err"
	}
	e.requests.WithLabelValues(cmp.Or(r.Client.Transport, "other"), result).Inc()
	e.clients.remember(r, e.set.Env.Now(), d.entry.strategy, answerErr)
	if err != nil {
		return sampling.Answer{}, err
	}
	return sampling.Answer{Strategy: d.entry.strategy, Origin: d.origin()}, nil
}

// Observe implements sampling.Observer. It has no effect unless sampling is adaptive.
func (e *extension) Observe(tenant string, roots []sampling.Root) {
	if e.observer != nil {
		e.observer.Observe(tenant, roots)
	}
}

// Explain implements sampling.Explainer.
func (e *extension) Explain(ctx context.Context, tenant, service, operation string) (*sampling.Explanation, error) {
	d, err := e.source.decide(ctx, tenant, service)
	out := &sampling.Explanation{Service: service, Operation: operation, Strategy: d.entry.strategy, Origin: d.origin(),
		Clients: e.clients.of(tenant, service, d.entry.strategy)}
	if err != nil {
		out.Origin.Problem = err.Error()
		out.Notes = notes(out)
		return out, nil
	}
	out.Sampler = d.entry.strategy.Sampler(operation)
	if o, ok := d.entry.operations[operation]; ok {
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

// notes returns facts about an explanation that are easy to overlook.
func notes(x *sampling.Explanation) []string {
	all := []string{"The service that starts a trace decides for the whole trace; downstream services follow."}
	if x.Sampler.Type == "ratelimiting" {
		all = append(all, "The limit applies to each process of the service, not to all together.")
	}
	if x.Sampler.LowerBound > 0 {
		all = append(all, fmt.Sprintf("Each process samples at least %.3g traces per second of each operation.",
			x.Sampler.LowerBound))
	}
	if len(x.Clients) == 0 {
		return append(all, "No client has requested the strategy of this service here since the process started: "+
			"clients use another endpoint, or their own configuration.")
	}
	switch last := x.Clients[0]; {
	case last.Failed:
		all = append(all, "Clients that get an error keep their previous strategy.")
	case !last.Current && x.Strategy != nil:
		all = append(all, "The strategy has changed since the last request. By default, clients request it every 60 seconds.")
	}
	return all
}
