package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// maxHeaderBytes limits the headers of a request. It is enough for cookies and tokens.
const maxHeaderBytes = 32 << 10

// HTTP serves a handler over HTTP/1.1. The handler receives a decompressed body of at most
// max_request_body_size. Bytes that it reads are charged to the budget until it returns. Use
// [ReadBody] to read a whole body.
type HTTP struct {
	acceptor  *acceptor
	set       pipeline.Settings
	handler   http.Handler
	denied    func(http.ResponseWriter, *http.Request, *Denied)
	maxBody   int64
	decoders  *decoders
	durations *prometheus.HistogramVec
	srv       *http.Server
	active    activeCalls // requests
	leaving   atomic.Bool // HandOver was called: responses ask clients to reconnect
	unused    unusedConns

	hosts         hosts
	origins       http.CrossOriginProtection
	trustsOrigin  func(*http.Request) bool // whether CORS allows the origin
	authenticates bool                     // whether clients need credentials
	public        func(*http.Request) bool
	unsafe        func(*http.Request) bool
	privileged    func(*http.Request) bool

	keepsHeaders bool // for Metadata

	grpc *GRPC // on the same port; nil without one
}

var (
	_ pipeline.Starter     = (*HTTP)(nil)
	_ pipeline.Stopper     = (*HTTP)(nil)
	_ pipeline.Replaceable = (*HTTP)(nil)
)

// NewHTTP returns a server that listens after Start. name is the path of its block below the
// component, such as `protocols.http`; it is the label listener of the metrics and a prefix of
// errors.
func NewHTTP(set pipeline.Settings, name string, cfg HTTPConfig, h http.Handler) (*HTTP, error) {
	sec, err := newSecurity(set, name, cfg.SecurityConfig, "http/1.1")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a, err := newAcceptor(set, name, transportHTTP, cfg.Endpoint, cfg.MaxConnections, sec)
	if err != nil {
		return nil, err
	}
	durations, err := newDurations(set.Metrics, name)
	if err != nil {
		return nil, err
	}
	s := &HTTP{acceptor: a, set: a.set, handler: h, maxBody: int64(cfg.MaxRequestBodySize), decoders: newDecoders(set.Budget),
		denied: deny, durations: durations, hosts: newHosts(cfg), authenticates: cfg.AuthenticatesClients(),
		public: none, unsafe: none, privileged: none, keepsHeaders: cfg.IncludeMetadata}
	// While a buffer grows, the body is in memory twice, so at most half the budget can be
	// admitted.
	if half := capToBudget(2*s.maxBody, set.Budget) / 2; half < s.maxBody {
		s.set.Logger.Warn("max_request_body_size exceeds half of service.limits.inflight; using half of it", zap.Int64("bytes", half))
		s.maxBody = half
	}
	errorLog, err := zap.NewStdLogAt(s.set.Logger, zap.WarnLevel)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var handler http.Handler
	handler, s.trustsOrigin = withCORS(cfg.CORS, http.HandlerFunc(s.serve))
	s.srv = &http.Server{
		Handler:           withHeaders(cfg.ResponseHeaders, handler),
		ReadHeaderTimeout: cfg.ReadHeaderTimeout.Std(),
		ReadTimeout:       cfg.ReadTimeout.Std(),
		WriteTimeout:      cfg.WriteTimeout.Std(),
		IdleTimeout:       cfg.IdleTimeout.Std(),
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         s.unused.onStateChange,
		ErrorLog:          errorLog,
	}
	return s, nil
}

// none selects no request.
func none(*http.Request) bool { return false }

// Handler returns the complete handler, with authentication, decompression and metrics, for tests
// without a network.
func (s *HTTP) Handler() http.Handler { return s.srv.Handler }

// OnDenied sets the function that responds to requests without valid credentials or tenant, and to
// requests of web pages that may not send them. The default response is plain text with 401, or 403
// for web pages. Call it before Start.
func (s *HTTP) OnDenied(respond func(w http.ResponseWriter, r *http.Request, d *Denied)) {
	s.denied = respond
}

// SetPublic sets the function that selects requests that need neither credentials nor a tenant.
// They are not checked: the handler must not return data in response. By default there are none.
// Call it before Start.
func (s *HTTP) SetPublic(isPublic func(r *http.Request) bool) { s.public = isPublic }

// SetUnsafe sets the function that selects requests with the methods GET, HEAD and OPTIONS that
// change state nevertheless. Web pages of other origins may not send them, nor any request with
// another method, unless CORS allows the origin. Call it before Start.
func (s *HTTP) SetUnsafe(isUnsafe func(r *http.Request) bool) { s.unsafe = isUnsafe }

// SetPrivileged sets the function that selects requests that need credentials, unless they are sent
// to a loopback address without a proxy. They are also unsafe, see SetUnsafe. Call it before Start.
func (s *HTTP) SetPrivileged(isPrivileged func(r *http.Request) bool) { s.privileged = isPrivileged }

// Addr returns the address of the listener, or "" before Start.
func (s *HTTP) Addr() string { return s.acceptor.addr() }

// Transport returns `http`.
func (s *HTTP) Transport() string { return transportHTTP }

// Logger implements [Listener].
func (s *HTTP) Logger() *zap.Logger { return s.set.Logger }

// CountRefused counts a request that the handler refused before it passed on data. Requests that
// the server itself refuses are already counted.
func (s *HTTP) CountRefused(reason string) { s.acceptor.countRefused(reason) }

// Start opens the listener. The error names the configuration key to change.
func (s *HTTP) Start(ctx context.Context) error {
	serve := s.srv.Serve
	if s.acceptor.security.tls != nil {
		serve = func(ln net.Listener) error {
			return s.srv.Serve(tls.NewListener(ln, s.acceptor.security.tls.Listener()))
		}
	}
	if err := s.acceptor.start(ctx, serve, http.ErrServerClosed); err != nil {
		return err
	}
	if s.grpc != nil {
		s.startGRPC()
	}
	return nil
}

// HandOver closes the listener. Each open connection is closed after its next response, so that no
// client sends a request on a connection that is being closed. Clients of gRPC must use another
// connection for new calls.
func (s *HTTP) HandOver(ctx context.Context) {
	s.leaving.Store(true)
	s.acceptor.stopAccepting()
	if s.grpc != nil && s.acceptor.open.count() > 0 {
		listen.Wait(acceptedWait, ctx.Done())
		s.grpc.gracefulStop()
	}
	select {
	case <-s.acceptor.open.whenIdle():
	case <-ctx.Done():
	}
}

// Stop closes the listener and idle connections and waits until active requests and calls are
// answered. If ctx ends first, it closes their connections and returns an error with their number.
func (s *HTTP) Stop(ctx context.Context) error {
	calls := make(chan error, 1)
	if s.grpc == nil {
		calls <- nil
	} else {
		go func() { calls <- s.grpc.Stop(ctx) }()
	}
	return errors.Join(s.stopRequests(ctx), <-calls)
}

func (s *HTTP) stopRequests(ctx context.Context) error {
	s.unused.stop()
	s.acceptor.security.stop()
	err := s.srv.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%s: %d requests aborted: %w", s.acceptor.name, s.active.count(), ctx.Err())
		s.srv.Close() //nolint:errcheck // closing what Shutdown left
		listen.Wait(listen.StopGrace, s.active.whenIdle())
	}
	<-s.acceptor.served
	return err
}

func (s *HTTP) serve(w http.ResponseWriter, r *http.Request) {
	s.active.beginCall()
	defer s.active.end()
	tw := &responseTracker{ResponseWriter: w, leaving: &s.leaving}
	tw.askToLeave() // even if the handler writes nothing
	start := s.set.Env.Now()
	defer func() {
		s.observe(tw, r, s.set.Env.Now().Sub(start))
		tw.endTrace(r)
	}()
	defer s.recover(tw, r)
	if d := s.checkBrowser(r); d != nil {
		s.refuseBrowser(tw, r, d)
		return
	}
	if !s.public(r) {
		r = s.beginTrace(tw, r, start)
		ctx, err := s.acceptor.security.check(r.Context(), r.RemoteAddr, r.Header.Values)
		if err != nil {
			s.deny(tw, r, err.(*Denied))
			return
		}
		if s.keepsHeaders {
			ctx = withMetadata(ctx, requestHeaders(r))
		}
		r = r.WithContext(ctx)
	}
	b, err := s.newBody(w, r)
	if err != nil {
		http.Error(tw, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer b.release()
	b.trace = tw.trace
	r.Body = b
	s.handler.ServeHTTP(tw, r)
}

// deny responds to a request that a check of the listener refused.
func (s *HTTP) deny(w http.ResponseWriter, r *http.Request, d *Denied) {
	s.acceptor.countRefused(d.Reason)
	ErrorStatus(w.Header(), d) // sets Retry-After
	if d.Reason == ReasonUnauthenticated {
		w.Header().Set("WWW-Authenticate", s.acceptor.security.auth.challenge(isScripted(r)))
	}
	s.denied(w, r, d)
}

// isScripted reports whether a script of a web page sent the request, with the usual header that
// identifies scripts. Web pages of other origins cannot send it without permission (see
// CORSConfig).
func isScripted(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("X-Requested-With"), "XMLHttpRequest")
}

// recover responds with 500 if the handler panicked. If the response has begun, it aborts the
// connection instead, so that the client does not mistake a partial response for a complete one.
func (s *HTTP) recover(w *responseTracker, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { // the handler aborts the connection on purpose
		panic(v)
	}
	s.acceptor.metrics.panics.Inc()
	s.set.Logger.Error("BUG: handler panicked", zap.Any("panic", v), zap.String("path", r.URL.Path),
		zap.String("client", s.acceptor.security.proxies.describe(r.RemoteAddr, r.Header.Values)), zap.Stack("stack"))
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	http.Error(w, "internal error", http.StatusInternalServerError)
}

// responseTracker records whether the response has begun, and its status.
type responseTracker struct {
	http.ResponseWriter
	begun   bool
	status  int                // 0 if none was written
	trace   *selftrace.Request // nil if the request is not traced
	leaving *atomic.Bool       // of the server
}

// WriteHeader implements http.ResponseWriter. Informational statuses do not begin the response.
func (t *responseTracker) WriteHeader(code int) {
	if code >= http.StatusOK && !t.begun {
		t.beginResponse()
		t.status = code
	}
	t.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (t *responseTracker) Write(p []byte) (int, error) {
	t.beginResponse()
	return t.ResponseWriter.Write(p)
}

// FlushError sends the part of the response that was written; http.ResponseController calls it.
func (t *responseTracker) FlushError() error {
	t.beginResponse()
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// beginResponse is called before the first byte of the response.
func (t *responseTracker) beginResponse() {
	if !t.begun {
		t.begun = true
		t.setTraceResponse()
		t.askToLeave()
	}
}

// askToLeave closes the connection after the response if the server hands over.
func (t *responseTracker) askToLeave() {
	if t.leaving.Load() {
		t.Header().Set("Connection", "close")
	}
}

// Unwrap gives http.ResponseController access to deadlines.
func (t *responseTracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// unusedConns holds the connections that have not sent a request yet. http.Server.Shutdown would
// wait several seconds for them.
type unusedConns struct {
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	stopped bool
}

// onStateChange is the ConnState function of an http.Server.
func (u *unusedConns) onStateChange(c net.Conn, st http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case st != http.StateNew:
		delete(u.conns, c)
	case u.stopped:
		c.Close() //nolint:errcheck // nothing was written to it
	default:
		if u.conns == nil {
			u.conns = map[net.Conn]struct{}{}
		}
		u.conns[c] = struct{}{}
	}
}

func (u *unusedConns) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopped = true
	for c := range u.conns {
		c.Close() //nolint:errcheck // nothing was written to it
	}
}
