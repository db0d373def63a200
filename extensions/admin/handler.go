package admin

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/processview"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// handler serves information about the process.
type handler struct {
	process   pipeline.Process
	now       func() time.Time
	log       *zap.Logger
	operation time.Duration // operation_timeout
}

// answerTime is the time to send the response of an operation that operation_timeout has ended.
const answerTime = 10 * time.Second

func newHandler(p pipeline.Process, now func() time.Time, log *zap.Logger, operation time.Duration) http.Handler {
	h := &handler{process: p, now: now, log: log, operation: operation}
	mux := http.NewServeMux()
	// A failing collector must not hide the others.
	mux.Handle("/metrics", promhttp.HandlerFor(p.Gatherer(), promhttp.HandlerOpts{DisableCompression: true,
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: zap.NewStdLog(log)}))
	mux.HandleFunc("/status", h.status)
	details := processview.Handlers{Process: p}
	mux.HandleFunc(processview.PathStatus, details.Status)
	mux.HandleFunc(processview.PathSampling, details.Sampling)
	mux.HandleFunc(processview.PathExplain, details.Explain)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("/readyz", h.ready)
	mux.HandleFunc("/version", h.version)
	mux.HandleFunc("/log-level", h.logLevel)
	mux.HandleFunc("/debug/vars", vars)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	for _, kind := range []pipeline.Kind{pipeline.KindReceiver, pipeline.KindExporter, pipeline.KindExtension} {
		prefix := "/" + kind.String() + "s/"
		mux.HandleFunc(prefix, func(w http.ResponseWriter, r *http.Request) { h.component(w, r, kind, prefix) })
	}
	mux.HandleFunc("/{$}", h.health)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusNotFound, notFound) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store") // current state, some of it only for holders of credentials
		mux.ServeHTTP(w, r)
	})
}

// isPrivileged reports whether a request shows the memory of the process, or changes what it does
// or stores.
func isPrivileged(r *http.Request) bool {
	for _, prefix := range []string{"/log-level", "/debug/", "/receivers/", "/exporters/", "/extensions/"} {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return true
		}
	}
	return false
}

// notFound is the response for an unknown path.
const notFound = "not found; this port serves /, /healthz, /readyz, /status, /metrics, /version, /log-level, " +
	"/status/details, /sampling, /debug/pprof/, /debug/vars, and operations of components below /receivers/, /exporters/ and /extensions/"

func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	code, body := h.process.Health().Answer(h.now())
	writeJSON(w, code, "application/json", body)
}

func (h *handler) ready(w http.ResponseWriter, _ *http.Request) {
	if health := h.process.Health(); !health.Ready {
		text := "not ready"
		if health.Reason != "" {
			text += ": " + health.Reason
		}
		writeText(w, http.StatusServiceUnavailable, text)
		return
	}
	writeText(w, http.StatusOK, "ready")
}

func (h *handler) status(w http.ResponseWriter, _ *http.Request) {
	s := h.process.Status()
	code := http.StatusOK
	if s.State == status.Starting || s.State == status.Stopped {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, "application/json", s)
}

type versionJSON struct {
	GitCommit  string `json:"gitCommit"`
	GitVersion string `json:"gitVersion"`
	BuildDate  string `json:"buildDate"`
}

func (h *handler) version(w http.ResponseWriter, _ *http.Request) {
	b := h.process.Build()
	writeJSON(w, http.StatusOK, "text/plain; charset=utf-8", versionJSON{b.Commit, b.Version, b.Date})
}

func (h *handler) logLevel(w http.ResponseWriter, r *http.Request) {
	level := h.process.LogLevel()
	before := level.Level()
	w.Header().Set("Content-Type", "application/json")
	r.Header.Set("Content-Type", "application/json") // accept any media type; curl sends the one for forms
	level.ServeHTTP(w, r)
	if after := level.Level(); after != before {
		h.log.Warn("log level changed", zap.Stringer("from", before), zap.Stringer("to", after))
	}
}

// component passes a request to the component in its path: /exporters/ID/..., where ID is type or
// type/name. Components start after and stop before this extension, so it looks them up for each
// request.
func (h *handler) component(w http.ResponseWriter, r *http.Request, kind pipeline.Kind, prefix string) {
	words := strings.Split(strings.TrimPrefix(r.URL.Path, prefix), "/")
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.Join(words[:n], "/")
		id, err := pipeline.ParseID(name)
		if err != nil {
			continue
		}
		if c := h.process.AdminHandler(kind, id); c != nil {
			h.operate(w, r, http.StripPrefix(prefix+name, c))
			return
		}
	}
	writeText(w, http.StatusNotFound, "no running component with this name has routes here")
}

// operate calls the handler of a component with operation_timeout instead of the timeouts of the
// server: an operation may take longer than other requests, and its outcome must reach the client.
func (h *handler) operate(w http.ResponseWriter, r *http.Request, component http.Handler) {
	ctx, cancel := context.WithTimeout(r.Context(), h.operation)
	defer cancel()
	w.Header().Set("Connection", "close") // the deadlines apply to this request only
	deadline := time.Now().Add(h.operation + answerTime)
	c := http.NewResponseController(w)
	if err := errors.Join(c.SetReadDeadline(deadline), c.SetWriteDeadline(deadline)); err != nil {
		h.log.Warn("cannot extend the timeouts of a request", zap.Error(err))
	}
	component.ServeHTTP(w, r.WithContext(ctx))
}

// vars writes all published variables except the command line.
func vars(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	separator := "{"
	expvar.Do(func(kv expvar.KeyValue) {
		if kv.Key == "cmdline" {
			return
		}
		fmt.Fprintf(w, "%s\n%q: %s", separator, kv.Key, kv.Value)
		separator = ","
	})
	fmt.Fprint(w, "\n}\n")
}

func writeJSON(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // the client has disconnected
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
