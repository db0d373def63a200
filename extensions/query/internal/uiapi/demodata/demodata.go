// Package demodata serves POST /api/ui/v1/demo, with which the start page of the web UI loads demo
// data: the traces of a shop, which this process sends to its own receiver.
package demodata

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/demo"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Config configures the API.
type Config struct {
	Period pipeline.Duration `yaml:"period" doc:"Time before the request for which traces are sent."`
	Rate   float64           `yaml:"rate" doc:"User requests per second of this period. Each creates about 14 spans."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Period: pipeline.Duration(2 * time.Hour), Rate: 2}
}

// maxRequests is the maximum number of user requests: period times rate.
const maxRequests = 100_000

var _ pipeline.Validator = (*Config)(nil)

// Validate checks the amount of data.
func (c *Config) Validate() error {
	switch {
	case c.Period.Std() < time.Minute:
		return pipeline.BadKey("period", "must be at least 1m, not %s", c.Period)
	case !(c.Rate > 0):
		return pipeline.BadKey("rate", "must be above 0, not %v", c.Rate)
	case c.Rate*c.Period.Std().Seconds() > maxRequests:
		return pipeline.BadKey("rate", "%v/s for %s are more than %d requests; reduce rate or period", c.Rate, c.Period, maxRequests)
	}
	return nil
}

// maxTime is the maximum time until the client has the response; it replaces the listener's
// timeout. The web UI waits as long.
const maxTime = 10 * time.Minute

// Options are parameters of the API in addition to its configuration.
type Options struct {
	Config
	TenantHeader string               // of requests to the receiver
	Intake       func() status.Intake // the receivers of this process
	Rand         func() uint64
}

// API is the handler. It is safe for concurrent use.
type API struct {
	Options
	backend *core.Backend
	origin  *http.CrossOriginProtection
	loading atomic.Bool
	closing context.Context
	cancel  context.CancelFunc
}

// New returns the API over a backend. The caller must close it.
func New(b *core.Backend, o Options) *API {
	a := &API{Options: o, backend: b, origin: http.NewCrossOriginProtection()}
	a.closing, a.cancel = context.WithCancel(context.Background())
	return a
}

// Close ends a load that is running.
func (a *API) Close() { a.cancel() }

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{{Pattern: "POST /api/ui/v1/demo", Handler: a.load}}
}

// loaded is the data of POST /api/ui/v1/demo.
type loaded struct {
	Requests int `json:"requests"` // of users
	Spans    int `json:"spans"`
}

var (
	errLoading     = errors.New("demo data is being loaded")
	errNotEmpty    = errors.New("store has spans; demo data is only loaded into an empty store; run \"tracing demo\" to add it")
	errNoReceiver  = errors.New("no receiver for demo data; add the otlp receiver with the protocol http to the configuration")
	errUnconfirmed = errors.New("not all spans of the demo data were acknowledged")
)

// load serves POST /api/ui/v1/demo; it responds when the data is stored. It accepts requests of the
// web UI and of programs, but not of other sites' pages.
func (a *API) load(w http.ResponseWriter, r *http.Request) {
	if err := a.origin.Check(r); err != nil {
		httpapi.WriteError(w, http.StatusForbidden, err.Error())
		return
	}
	if !a.loading.CompareAndSwap(false, true) {
		httpapi.WriteError(w, http.StatusConflict, errLoading.Error())
		return
	}
	defer a.loading.Store(false)
	names, err := a.backend.Services(r.Context(), tracestore.NameQuery{Limit: 1})
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	if len(names.List) > 0 || !names.Damage.Complete() {
		httpapi.WriteError(w, http.StatusConflict, errNotEmpty.Error())
		return
	}
	to := a.receiver()
	if to == "" {
		httpapi.WriteError(w, http.StatusNotImplemented, errNoReceiver.Error())
		return
	}
	if err := route.ExtendDeadlines(w, time.Now(), maxTime); err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	s, err := a.send(r.Context(), to)
	if err != nil {
		httpapi.WriteError(w, http.StatusBadGateway, err.Error())
		return
	}
	route.WriteData(a.backend, w, r, loaded{s.Requests, s.Spans}, nil)
}

// send sends the demo data to a receiver. It ends early if the API is closed, but not if the client
// disconnects: with a part of the data, the store would no longer be empty.
func (a *API) send(ctx context.Context, to string) (demo.Summary, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(a.closing, cancel)()
	o := demo.Options{OTLP: to, Direct: true, Header: http.Header{}, Rate: a.Rate, Seed: a.Rand(), Backfill: a.Period.Std(), Once: true,
		Now: a.backend.Now}
	if tenant := server.Tenant(ctx); tenant != "" {
		o.Header.Set(a.TenantHeader, tenant)
	}
	s, err := demo.Run(ctx, o)
	switch {
	case err != nil:
		return s, fmt.Errorf("demo data was not acknowledged: %w", err)
	case s.Acknowledged < s.Spans:
		return s, fmt.Errorf("%w: %s", errUnconfirmed, s)
	}
	return s, ctx.Err()
}

// Possible reports whether this process has a receiver for demo data.
func (a *API) Possible() bool { return a.receiver() != "" }

// receiver returns the URL of this process's receiver for OTLP over HTTP, or "".
func (a *API) receiver() string {
	for _, r := range a.Intake().Receivers {
		if id, err := pipeline.ParseID(r.Component); err != nil || id.Type != "otlp" || r.Transport != "http" || len(r.Addresses) == 0 {
			continue
		}
		if url := commands.LocalURL(r.Addresses[0]); url != "" {
			return url
		}
	}
	return ""
}
