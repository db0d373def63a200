package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// handler serves the HTTP JSON API. Every answer is a list inside the same envelope.
type handler struct {
	store   Store
	limits  limits
	logger  *zap.Logger
	metrics *metrics
	now     func() time.Time
}

// limits bound what one request may cost. All are above 0.
type limits struct {
	timeout   time.Duration
	traces    int // in one answer
	traceSize int // spans of one trace
	scanned   int // spans examined for one search
}

// routes returns the API under base, which is "" or begins with a slash. What is no route is not found, whatever the method.
func (h *handler) routes(base string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base+"/api/traces", h.search)
	mux.HandleFunc("GET "+base+"/api/traces/{id}", h.trace)
	mux.HandleFunc("GET "+base+"/api/services", h.services)
	mux.HandleFunc("GET "+base+"/api/services/{service}/operations", h.operationNames)
	mux.HandleFunc("GET "+base+"/api/operations", h.operations)
	mux.HandleFunc("GET "+base+"/api/dependencies", h.dependencies)
	mux.HandleFunc("GET "+base+"/{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "Tracing backend, query API. Begin with %[1]s/api/services, then %[1]s/api/traces?service=NAME\n", base)
	})
	mux.HandleFunc("/", http.NotFound)
	return mux
}

func (h *handler) services(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.limits.timeout)
	defer cancel()
	var names []string
	err := h.measure(opGetServices, func() (_ int, err error) {
		names, err = h.store.Services(ctx, server.Tenant(ctx))
		return len(names), err
	})
	if err != nil {
		h.failed(w, r, err)
		return
	}
	h.answer(newList(w, r), "[]", len(names), func(dst []byte, i int) []byte { return otlpdata.AppendJSONString(dst, names[i]) })
}

// operationNames lists names only; a name occurs once, whatever kinds its spans are of.
func (h *handler) operationNames(w http.ResponseWriter, r *http.Request) {
	ops, err := h.storedOperations(r, r.PathValue("service"), "")
	if err != nil {
		h.failed(w, r, err)
		return
	}
	var names []string
	seen := make(map[string]bool, len(ops))
	for _, op := range ops {
		if !seen[op.Name] {
			seen[op.Name] = true
			names = append(names, op.Name)
		}
	}
	h.answer(newList(w, r), "null", len(names), func(dst []byte, i int) []byte { return otlpdata.AppendJSONString(dst, names[i]) })
}

func (h *handler) operations(w http.ResponseWriter, r *http.Request) {
	params := r.URL.Query()
	service := params.Get("service")
	if service == "" {
		writeError(w, http.StatusBadRequest, errNoService.Error())
		return
	}
	ops, err := h.storedOperations(r, service, params.Get("spanKind"))
	if err != nil {
		h.failed(w, r, err)
		return
	}
	h.answer(newList(w, r), "[]", len(ops), func(dst []byte, i int) []byte {
		dst = otlpdata.AppendJSONString(append(dst, `{"name":`...), ops[i].Name)
		dst = otlpdata.AppendJSONString(append(dst, `,"spanKind":`...), ops[i].Kind)
		return append(dst, '}')
	})
}

func (h *handler) storedOperations(r *http.Request, service, kind string) (ops []tracestore.Operation, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), h.limits.timeout)
	defer cancel()
	err = h.measure(opGetOperations, func() (_ int, err error) {
		ops, err = h.store.Operations(ctx, server.Tenant(ctx), service, kind)
		return len(ops), err
	})
	return ops, err
}

// answer writes a list of n short elements, and their number as total.
func (h *handler) answer(l *list, empty string, n int, element func(dst []byte, i int) []byte) {
	defer l.close()
	for i := range n {
		if l.add(func(dst []byte) ([]byte, error) { return element(dst, i), nil }) != nil {
			return // the client is gone
		}
	}
	h.finish(l, empty, tail{Total: n})
}

func (h *handler) finish(l *list, empty string, t tail) {
	if err := l.finish(empty, t); err != nil {
		h.logger.Debug("answer not delivered", zap.Error(err))
	}
}

// measure counts a question to the store, which returns the number of results. That the client went away is no failure of the store.
func (h *handler) measure(op operation, ask func() (int, error)) error {
	start := h.now()
	n, err := ask()
	failed := err != nil && !errors.Is(err, errUndelivered) && !errors.Is(err, context.Canceled)
	h.metrics.observe(op, h.now().Sub(start), failed)
	if err == nil {
		h.metrics.responses.WithLabelValues(string(op)).Observe(float64(n))
	}
	return err
}

// failed answers a request that the store could not answer.
func (h *handler) failed(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case r.Context().Err() != nil: // nobody is listening
	case errors.Is(err, context.DeadlineExceeded):
		writeError(w, http.StatusGatewayTimeout, h.timeoutText())
	default:
		h.logger.Error("HTTP handler, Internal Server Error", zap.Error(err))
		writeError(w, http.StatusInternalServerError, err.Error())
	}
}

func (h *handler) timeoutText() string {
	return fmt.Sprintf("the store did not finish within query_timeout (%s); ask for less", h.limits.timeout)
}
