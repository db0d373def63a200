package query

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TailConfig are the keys below `tail`.
type TailConfig struct {
	MaxClients  int               `yaml:"max_clients" doc:"How many clients may watch spans as they are stored, at once; 0: none."`
	MaxRate     int               `yaml:"max_spans_per_second" doc:"How many spans one client is shown in a second at most; it is told how many more there were."`
	MaxExamined int               `yaml:"max_examined_per_second" doc:"How many spans are examined for one client in a second at most; it is told how many were not."`
	MaxDuration pipeline.Duration `yaml:"max_duration" doc:"How long a client may watch before it must ask again."`
	MaxQueue    pipeline.ByteSize `yaml:"max_queue_size" doc:"How many bytes of spans wait for one client at most, as a part of max_answer_memory."`
}

func defaultTail() TailConfig {
	return TailConfig{MaxClients: 16, MaxRate: 100, MaxExamined: 50_000, MaxDuration: pipeline.Duration(15 * time.Minute), MaxQueue: 4 << 20}
}

// Validate checks the bounds.
func (c *TailConfig) Validate() error {
	errs := []error{above0("max_spans_per_second", c.MaxRate), above0("max_examined_per_second", c.MaxExamined),
		above0("max_queue_size", int(c.MaxQueue))}
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
	tailTick  = time.Second      // in which rates are counted, and after which clients are told of what they do not see
	tailPulse = 15 * time.Second // how long a client hears nothing at most
	tailWrite = 10 * time.Second // how long it may take to take in what is sent
)

// tails are the clients that watch.
type tails struct {
	config  TailConfig
	running atomic.Int64
	stop    chan struct{} // closed by close
	once    sync.Once
}

func newTails(c TailConfig) *tails { return &tails{config: c, stop: make(chan struct{})} }

// close lets all clients go. The listener waits for them when it stops.
func (t *tails) close() { t.once.Do(func() { close(t.stop) }) }

// tail answers GET /api/ui/v1/tail: spans as they are stored, as server-sent events.
func (h *handler) tail(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r)
	var where tracestore.Expr
	if err == nil {
		where, err = parseCondition(v, "q")
	}
	store, ok := h.store.(tracestore.Follower)
	switch {
	case err != nil:
		writeError(w, http.StatusBadRequest, err.Error())
		return
	case !ok || h.tails.config.MaxClients == 0:
		writeError(w, http.StatusNotImplemented, fmt.Sprintf("%v tell of spans as they are stored, or tail.max_clients is 0", errCannot))
		return
	case headOnly(w, r, eventStream):
		return
	}
	release, err := h.admitTail()
	if err != nil {
		h.failed(w, r, err)
		return
	}
	defer release()
	feed := store.Follow(server.Tenant(r.Context()), int(h.tails.config.MaxQueue))
	defer feed.Close()
	watcher := watcher{lines: newLines(w, eventStream), config: &h.tails.config, feed: feed, where: where}
	h.delivered(watcher.run(r.Context(), h.tails.stop))
}

// admitTail lets a client in and reserves what may wait for it. release must be called in the end.
func (h *handler) admitTail() (release func(), err error) {
	t := h.tails
	if n := t.running.Add(1); n > int64(t.config.MaxClients) {
		t.running.Add(-1)
		return nil, pipeline.Overloaded(fmt.Errorf("%w: tail.max_clients (%d) are watching", errBusy, t.config.MaxClients), 0)
	}
	memory, err := h.memory.Reserve(int64(t.config.MaxQueue))
	if err != nil {
		t.running.Add(-1)
		return nil, pipeline.Overloaded(fmt.Errorf("%w: answers hold max_answer_memory (%d bytes)", errBusy, h.memory.Limit()), 0)
	}
	return func() {
		memory.Release()
		t.running.Add(-1)
	}, nil
}
