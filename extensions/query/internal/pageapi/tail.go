package pageapi

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/page"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TailConfig are the keys below `tail`.
type TailConfig struct {
	MaxClients  int               `yaml:"max_clients" doc:"Maximum number of concurrent live-tail clients. 0 disables the live tail."`
	MaxRate     int               `yaml:"max_spans_per_second" doc:"Maximum number of spans per second that are sent to one client. Of further matching spans, the client receives only the number."`
	MaxExamined int               `yaml:"max_examined_per_second" doc:"Maximum number of spans per second that are examined for one client. Of further spans, the client receives only the number."`
	MaxDuration pipeline.Duration `yaml:"max_duration" doc:"Maximum duration of a live-tail request. After that, the client must send the request again."`
	MaxQueue    pipeline.ByteSize `yaml:"max_queue_size" doc:"Maximum size of the spans that are buffered for one client. Buffered spans count towards service.limits.query_memory."`
}

// DefaultTailConfig returns the default settings.
func DefaultTailConfig() TailConfig {
	return TailConfig{MaxClients: 16, MaxRate: 100, MaxExamined: 50_000,
		MaxDuration: pipeline.Duration(15 * time.Minute), MaxQueue: 4 << 20}
}

// Validate checks the limits.
func (c *TailConfig) Validate() error {
	var errs []error
	for _, limit := range []struct {
		key   string
		value int
	}{{"max_spans_per_second", c.MaxRate}, {"max_examined_per_second", c.MaxExamined}, {"max_queue_size", int(c.MaxQueue)}} {
		if limit.value <= 0 {
			errs = append(errs, pipeline.BadKey(limit.key, "must be above 0, not %d", limit.value))
		}
	}
	if c.MaxClients < 0 {
		errs = append(errs, pipeline.BadKey("max_clients", "must not be below 0"))
	}
	if c.MaxDuration <= 0 {
		errs = append(errs, pipeline.BadKey("max_duration", "must be above 0"))
	}
	return errors.Join(errs...)
}

const eventStream = "text/event-stream"

const (
	tailInterval     = time.Second      // to which rate limits apply, and after which counts are sent
	tailKeepAlive    = 15 * time.Second // maximum time without an event
	tailWriteTimeout = 10 * time.Second // maximum time for a client to read an event
)

// Tails are the clients that watch spans.
type Tails struct {
	config  TailConfig
	running atomic.Int64
	stop    chan struct{} // closed by Close
	once    sync.Once
}

// NewTails returns Tails without clients.
func NewTails(c TailConfig) *Tails { return &Tails{config: c, stop: make(chan struct{})} }

// Close ends the answers to all clients. The listener waits for them when it stops.
func (t *Tails) Close() { t.once.Do(func() { close(t.stop) }) }

// tail answers GET /api/ui/v1/tail with server-sent events for spans, as they are stored.
func (a *API) tail(w http.ResponseWriter, r *http.Request) {
	v, err := httpapi.Query(r)
	var where tracestore.Expr
	if err == nil {
		where, err = httpapi.ConditionParam(v, "q")
	}
	store, ok := core.StoreAs[tracestore.Follower](r.Context(), a.backend)
	switch {
	case err != nil:
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	case !ok || a.tails.config.MaxClients == 0:
		text := fmt.Sprintf("%v report spans as they are stored, or tail.max_clients is 0", page.ErrUnsupported)
		httpapi.WriteError(w, http.StatusNotImplemented, text)
		return
	case page.HeadOnly(w, r, eventStream):
		return
	}
	release, err := a.admitTail()
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	defer release()
	feed, err := store.Follow(r.Context(), server.Tenant(r.Context()), int(a.tails.config.MaxQueue))
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	defer feed.Close()
	c := watcher{out: page.NewLines(w, eventStream), config: &a.tails.config, feed: feed, where: tracestore.WithContext(r.Context(), where)}
	a.backend.LogUndelivered(c.run(r.Context(), a.tails.stop))
}

// admitTail admits a client and reserves memory for its queue. The caller must call release.
func (a *API) admitTail() (release func(), err error) {
	t := a.tails
	if n := t.running.Add(1); n > int64(t.config.MaxClients) {
		t.running.Add(-1)
		return nil, pipeline.Overloaded(fmt.Errorf("%w: tail.max_clients (%d) are connected", core.ErrBusy, t.config.MaxClients), 0)
	}
	memory, err := a.backend.Reserve(int64(t.config.MaxQueue))
	if err != nil {
		t.running.Add(-1)
		return nil, err
	}
	return func() {
		memory.Release()
		t.running.Add(-1)
	}, nil
}
