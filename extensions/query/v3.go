package query

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/otlpjson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// noTraces is what clients of /api/v3 are told when there is no trace to show.
const noTraces = "No traces found"

// errorV3 is the body of errors of /api/v3.
type errorV3 struct {
	HTTPCode int    `json:"httpCode"`
	Message  string `json:"message"`
}

func writeErrorV3(w http.ResponseWriter, status int, msg string) {
	body, err := json.Marshal(struct {
		Error errorV3 `json:"error"`
	}{errorV3{status, msg}})
	if err != nil { // of a number and a string
		body = []byte(msg)
	}
	http.Error(w, string(body), status)
}

func (h *handler) failedV3(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // nobody is listening
		return
	}
	status, text := h.explain(w.Header(), err)
	writeErrorV3(w, status, text)
}

// servicesV3 answers GET /api/v3/services.
func (h *handler) servicesV3(w http.ResponseWriter, r *http.Request) {
	names, err := h.storedServices(r)
	if err != nil {
		h.failedV3(w, r, err)
		return
	}
	h.answerV3(w, r, "services", len(names), func(dst []byte, i int) []byte { return otlpdata.AppendJSONString(dst, names[i]) })
}

// operationsV3 answers GET /api/v3/operations. A span without a kind is internal, as OpenTelemetry has it.
func (h *handler) operationsV3(w http.ResponseWriter, r *http.Request) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		writeErrorV3(w, http.StatusBadRequest, err.Error())
		return
	}
	ops, err := h.storedOperations(r, v.Get("service"), paramV3(v, "spanKind"))
	if err != nil {
		h.failedV3(w, r, err)
		return
	}
	ops = withKinds(ops)
	h.answerV3(w, r, "operations", len(ops), func(dst []byte, i int) []byte { return appendOperation(dst, &ops[i]) })
}

// withKinds returns operations that all have a kind. Those without one come first of their name.
func withKinds(ops []tracestore.Operation) (out []tracestore.Operation) {
	const internal = "internal"
	without := "" // the last name that had an operation without a kind
	for i, op := range ops {
		switch {
		case op.Kind == "":
			without, op.Kind = op.Name, internal
		case op.Kind == internal && op.Name == without && i > 0:
			continue
		}
		out = append(out, op)
	}
	return out
}

// answerV3 writes an object whose only member is a list of n elements.
func (h *handler) answerV3(w http.ResponseWriter, r *http.Request, name string, n int, element func(dst []byte, i int) []byte) {
	s := newStream(w, r)
	defer s.close()
	s.buf = append(append(append(s.buf, `{"`...), name...), `":[`...)
	for i := range n {
		if s.add(func(dst []byte) ([]byte, error) { return element(comma(dst, i), i), nil }) != nil {
			return // the client is gone
		}
	}
	s.buf = append(s.buf, "]}"...)
	h.delivered(s.flush())
}

// comma appends what stands before element i of a list.
func comma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// traceV3 answers GET /api/v3/traces/{id}.
func (h *handler) traceV3(w http.ResponseWriter, r *http.Request) {
	ref, raw, err := parseTraceV3(r)
	if err != nil {
		writeErrorV3(w, http.StatusBadRequest, err.Error())
		return
	}
	h.answerTraces(w, r, opGetTrace, func(t *turn, a *tracesV3) (string, error) {
		pieces, err := t.trace(server.Tenant(t), ref)
		if err == nil && len(pieces) > 0 {
			err = a.add(h.adjustment(raw), pieces...)
		}
		return "", err
	})
}

// searchV3 answers GET /api/v3/traces.
func (h *handler) searchV3(w http.ResponseWriter, r *http.Request) {
	s, err := parseSearchV3(r.URL.RawQuery)
	if err != nil {
		writeErrorV3(w, http.StatusBadRequest, err.Error())
		return
	}
	h.answerTraces(w, r, opFindTraces, func(t *turn, a *tracesV3) (string, error) {
		q := s.exactly(server.Tenant(t), &h.limits)
		opt := h.adjustment(s.raw)
		outcome, err := t.find(q, s.set, func(trace *otlpdata.Batch) error { return a.add(opt, trace) })
		return s.incomplete(&outcome, q.Limit), err
	})
}

// tracesV3 writes traces as one object, `{"result":{"resourceSpans":[...]}}`.
type tracesV3 struct {
	stream
	writer otlpjson.Writer
	traces int
}

func (a *tracesV3) add(opt adjust.Options, pieces ...*otlpdata.Batch) error {
	err := a.stream.add(func(dst []byte) ([]byte, error) {
		a.writer.Buf = dst
		err := adjust.Walk(opt, &a.writer, pieces...)
		a.writer.End()
		return a.writer.Buf, err
	})
	if err == nil {
		a.traces++
	}
	return err
}

// answerTraces writes the traces that fill adds. What fill returns says why traces may be missing.
func (h *handler) answerTraces(w http.ResponseWriter, r *http.Request, op operation, fill func(*turn, *tracesV3) (string, error)) {
	t, err := h.admit(r.Context())
	if err != nil {
		h.failedV3(w, r, err)
		return
	}
	defer t.done()
	a := &tracesV3{stream: newStream(w, r)}
	defer a.close()
	a.buf = append(a.buf, `{"result":{"resourceSpans":[`...)
	a.writer.Flush = a.spill
	var incomplete string
	err = h.measure(op, func() (int, error) {
		incomplete, err = fill(t, a)
		return a.traces, err
	})
	if err != nil && a.isWorth(a.traces, err) {
		_, text := h.explain(http.Header{}, err)
		incomplete, err = incompleteText+text, nil
	}
	switch {
	case err != nil && (r.Context().Err() != nil || errors.Is(err, errUndelivered)): // nobody is listening
	case err != nil && a.sent > 0:
		h.tear(err)
	case err != nil:
		h.failedV3(w, r, err)
	case a.traces == 0 && incomplete == "":
		writeErrorV3(w, http.StatusNotFound, noTraces)
	default:
		a.buf = append(appendWarning(append(a.buf, "]}"...), incomplete), '}')
		h.delivered(a.flush())
	}
}

// appendWarning appends a member of our own, only where there is something to warn of.
func appendWarning(dst []byte, text string) []byte {
	if text == "" {
		return dst
	}
	return append(otlpdata.AppendJSONString(append(dst, `,"warnings":[`...), text), ']')
}
