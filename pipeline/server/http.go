package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// maxHeaderBytes bounds the headers of a request: room for cookies and tokens, not for payloads.
const maxHeaderBytes = 32 << 10

// HTTP serves a handler over HTTP/1.1. Handlers get the request's body decompressed and within max_request_body_size; what they read of it
// is charged to the budget until they return. [ReadBody] is the best way to read all of it.
type HTTP struct {
	*base
	handler   http.Handler
	denied    func(http.ResponseWriter, *http.Request, *Denied)
	maxBody   int64
	decoders  *decoders
	durations *prometheus.HistogramVec
	srv       *http.Server
	calls     calls
	fresh     freshConns
}

var (
	_ pipeline.Starter = (*HTTP)(nil)
	_ pipeline.Stopper = (*HTTP)(nil)
)

// NewHTTP makes a server that does not listen yet. name is the path of its block below the component, `protocols.http`: the metrics'
// label, and what errors call it.
func NewHTTP(set pipeline.Settings, name string, cfg HTTPConfig, h http.Handler) (*HTTP, error) {
	sec, err := newSecurity(set, cfg.SecurityConfig, "http/1.1")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b, err := newBase(set, name, cfg.Endpoint, cfg.MaxConnections, sec)
	if err != nil {
		return nil, err
	}
	durations, err := newDurations(set.Metrics, name)
	if err != nil {
		return nil, err
	}
	s := &HTTP{base: b, handler: h, maxBody: int64(cfg.MaxRequestBodySize), decoders: newDecoders(set.Budget), denied: deny}
	s.durations = durations
	// A body that grows is held twice for a moment, so one of half the budget is the greatest that can be admitted.
	if half := capToBudget(2*s.maxBody, set.Budget) / 2; half < s.maxBody {
		b.set.Logger.Warn("max_request_body_size is more than half of service.limits.inflight; the half is the limit", zap.Int64("bytes", half))
		s.maxBody = half
	}
	errorLog, err := zap.NewStdLogAt(b.set.Logger, zap.WarnLevel)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.srv = &http.Server{
		Handler:           withHeaders(cfg.ResponseHeaders, withCORS(cfg.CORS, http.HandlerFunc(s.serve))),
		ReadHeaderTimeout: cfg.ReadHeaderTimeout.Std(),
		ReadTimeout:       cfg.ReadTimeout.Std(),
		WriteTimeout:      cfg.WriteTimeout.Std(),
		IdleTimeout:       cfg.IdleTimeout.Std(),
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         s.fresh.state,
		ErrorLog:          errorLog,
	}
	return s, nil
}

// Handler returns the handler with all that surrounds it but the network, for tests of components.
func (s *HTTP) Handler() http.Handler { return s.srv.Handler }

// OnDenied sets what answers requests that are not let in, for protocols with errors of their own form; only before Start. Without it the
// answer is 401 with the bare text.
func (s *HTTP) OnDenied(answer func(w http.ResponseWriter, r *http.Request, d *Denied)) {
	s.denied = answer
}

// Start listens. The error names the key to change.
func (s *HTTP) Start(ctx context.Context) error {
	serve := s.srv.Serve
	if s.security.tls != nil {
		serve = func(ln net.Listener) error { return s.srv.Serve(tls.NewListener(ln, s.security.tls.Listener())) }
	}
	return s.start(ctx, serve, http.ErrServerClosed)
}

// Stop accepts no more connections and closes those without a request; requests that are being served get their answer. When ctx ends
// first, their connections are closed and the error says how many they were.
func (s *HTTP) Stop(ctx context.Context) error {
	s.fresh.stop()
	err := s.srv.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%s: %d requests were cut off: %w", s.name, s.calls.open(), ctx.Err())
		s.srv.Close() //nolint:errcheck // closing what Shutdown left
		within(hardStopGrace, s.calls.idle())
	}
	<-s.served
	return err
}

func (s *HTTP) serve(w http.ResponseWriter, r *http.Request) {
	s.calls.begin()
	defer s.calls.end()
	aw := &answer{ResponseWriter: w}
	start := s.set.Env.Now()
	defer func() { s.observe(aw, r, s.set.Env.Now().Sub(start)) }()
	defer s.recover(aw, r)
	ctx, err := s.security.check(r.Context(), r.Header.Values)
	if err != nil {
		d := err.(*Denied)
		s.Refused(d.Reason)
		if d.Reason == ReasonUnauthenticated {
			w.Header().Set("WWW-Authenticate", s.security.auth.challenge())
		}
		s.denied(aw, r, d)
		return
	}
	r = r.WithContext(ctx)
	b, err := s.newBody(w, r)
	if err != nil {
		http.Error(aw, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer b.release()
	r.Body = b
	s.handler.ServeHTTP(aw, r)
}

// recover answers for a handler that panicked. An answer that has begun cannot be taken back: its connection is cut, so that the client
// does not take half of it for the whole.
func (s *HTTP) recover(w *answer, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { // meant to cut the connection
		panic(v)
	}
	s.metrics.panics.Inc()
	s.set.Logger.Error("BUG: handler panicked", zap.Any("panic", v), zap.String("path", r.URL.Path), zap.Stack("stack"))
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	http.Error(w, "internal error", http.StatusInternalServerError)
}

// answer notes whether the answer has begun, and with which status.
type answer struct {
	http.ResponseWriter
	begun  bool
	status int // 0: none was written
}

// WriteHeader begins the answer, unless the status is an informational one.
func (a *answer) WriteHeader(code int) {
	if code >= http.StatusOK && !a.begun {
		a.begun, a.status = true, code
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write begins the answer.
func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find flushing and deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// freshConns holds the connections that have not sent a request yet. http.Server.Shutdown would wait seconds for each.
type freshConns struct {
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	stopped bool
}

// state is a http.Server.ConnState.
func (f *freshConns) state(c net.Conn, st http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case st != http.StateNew:
		delete(f.conns, c)
	case f.stopped:
		c.Close() //nolint:errcheck // nothing was said on it
	default:
		if f.conns == nil {
			f.conns = map[net.Conn]struct{}{}
		}
		f.conns[c] = struct{}{}
	}
}

func (f *freshConns) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	for c := range f.conns {
		c.Close() //nolint:errcheck // nothing was said on it
	}
}
