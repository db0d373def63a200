package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const eventStream = "text/event-stream"

const (
	interval     = time.Second      // interval of rate limits, and between counts
	steps        = 4                // steps of an interval; summaries of traces are sent in each
	keepAlive    = 15 * time.Second // maximum time without an event
	writeTimeout = 10 * time.Second // maximum time for a client to read an event
)

// API is the handler and its clients.
type API struct {
	backend *core.Backend
	config  Config
	clients *core.Admission
	stop    chan struct{} // closed by Close
	once    sync.Once
}

// New returns an API without clients.
func New(b *core.Backend, c Config) *API {
	return &API{backend: b, config: c, clients: core.NewAdmission("tail.max_clients", c.MaxClients), stop: make(chan struct{})}
}

// Path is the path of the API.
const Path = "/api/ui/v1/tail"

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{{Pattern: "GET " + Path, Handler: a.tail}}
}

// Close ends the responses to all clients. The listener waits for them when it stops.
func (a *API) Close() { a.once.Do(func() { close(a.stop) }) }

// params are the parameters of a request.
type params struct {
	where  tracestore.Expr
	traces bool
}

var errOf = errors.New("must be spans or traces")

func parse(l traceql.Language, r *http.Request) (p params, err error) {
	v, err := httpapi.Query(r)
	if err != nil {
		return p, err
	}
	if p.traces, err = ofParam(v); err != nil {
		return p, err
	}
	p.where, err = httpapi.ConditionParam(l, v, "q")
	return p, err
}

// ofParam parses `of` and reports whether it is `traces`.
func ofParam(v url.Values) (bool, error) {
	switch v.Get("of") {
	case "", "spans":
		return false, nil
	case "traces":
		return true, nil
	}
	return false, httpapi.ParamError("of", errOf)
}

// tail serves GET /api/ui/v1/tail with server-sent events for spans or traces as they are stored.
func (a *API) tail(w http.ResponseWriter, r *http.Request) {
	p, err := parse(a.backend.Language(r.Context()), r)
	store, ok := core.StoreAs[tracestore.Follower](r.Context(), a.backend)
	switch {
	case err != nil:
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	case !ok || a.config.MaxClients == 0:
		text := fmt.Sprintf("%v report spans as they are stored, or tail.max_clients is 0", route.ErrUnsupported)
		httpapi.WriteError(w, http.StatusNotImplemented, text)
		return
	case route.HeadOnly(w, r, eventStream):
		return
	}
	release, err := a.admit(r.Context(), p.traces)
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	defer release()
	feed, err := store.Follow(r.Context(), server.Tenant(r.Context()), int(a.config.MaxQueue))
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	defer feed.Close()
	c := watcher{
		out: route.NewLines(w, eventStream), config: &a.config, feed: feed,
		events: a.source(r.Context(), tracestore.WithContext(r.Context(), p.where), p.traces),
	}
	a.backend.LogUndelivered(c.run(r.Context(), a.stop))
}

func (a *API) source(ctx context.Context, where tracestore.Expr, traces bool) source {
	if traces {
		return newTraceEvents(&a.config, where, reader{ctx: ctx, backend: a.backend, maxSpans: a.config.MaxTraceSpans})
	}
	return &spanEvents{config: &a.config, where: where}
}

// admit admits a client and reserves memory for its queue and its traces. The caller must call
// release.
func (a *API) admit(ctx context.Context, traces bool) (release func(), err error) {
	leave, _, err := a.clients.Enter(ctx, 0)
	if err != nil {
		return nil, err
	}
	size := int64(a.config.MaxQueue)
	if traces {
		size += int64(a.config.MaxTraces) * traceMemory
	}
	memory, err := a.backend.Reserve(size)
	if err != nil {
		leave()
		return nil, err
	}
	return func() {
		memory.Release()
		leave()
	}, nil
}
