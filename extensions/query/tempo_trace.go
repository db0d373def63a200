package query

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/translate/otlpjson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const mediaProtobuf = "application/protobuf"

// tempoTrace answers GET /tempo/api/traces/{id} with the spans: `{"batches":[...]}`, or an OTLP TracesData message.
func (h *handler) tempoTrace(w http.ResponseWriter, r *http.Request) { h.answerTempoTrace(w, r, false) }

// tempoTraceV2 answers GET /tempo/api/v2/traces/{id} with the spans and whether they are all: a message TraceByIDResponse (tempopb,
// tempo.proto).
func (h *handler) tempoTraceV2(w http.ResponseWriter, r *http.Request) {
	h.answerTempoTrace(w, r, true)
}

func (h *handler) answerTempoTrace(w http.ResponseWriter, r *http.Request, wrapped bool) {
	id, err := parseTempoTrace(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t, err := h.admit(r.Context())
	if err != nil {
		h.failedTempo(w, r, err)
		return
	}
	defer t.done()
	out := &tempoAnswer{ResponseWriter: w}
	err = h.measure(opGetTrace, func() (int, error) {
		pieces, err := t.trace(server.Tenant(t), tracestore.TraceRef{ID: id})
		switch {
		case err != nil:
			return 0, err
		case len(pieces) == 0:
			return 0, errTraceNotFound
		case strings.Contains(r.Header.Get("Accept"), mediaProtobuf):
			return 1, h.writeTempoProtobuf(t, out, wrapped, pieces)
		}
		return 1, h.writeTempoJSON(out, r, wrapped, pieces)
	})
	switch {
	case err == nil, errors.Is(err, errUndelivered):
	case errors.Is(err, errTraceNotFound):
		http.Error(w, errTraceNotFound.Error(), http.StatusNotFound)
	case out.begun:
		h.tear(err)
	default:
		h.failedTempo(w, r, err)
	}
}

// parseTempoTrace reads the id, and whether the interval is one: a trace is found and shown as a whole, wherever in time it is.
func parseTempoTrace(r *http.Request) (id otlpdata.TraceID, err error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return id, err
	}
	if id, err = parseTraceID(r.PathValue("id")); err != nil {
		return id, fmt.Errorf("invalid trace id: %w", err)
	}
	_, _, err = tempoWindow(v)
	return id, err
}

// cut says what is missing of a trace that is too long, else "".
func (h *handler) cut(pieces []*otlpdata.Batch) string {
	spans := 0
	for _, b := range pieces {
		spans += b.Len()
	}
	if spans <= h.limits.traceSize {
		return ""
	}
	return fmt.Sprintf("the trace has more than max_trace_size (%d) spans; the first ones are shown", h.limits.traceSize)
}

// tempoAnswer remembers whether a part of the answer is with the client, who cannot be told of an error any more.
type tempoAnswer struct {
	http.ResponseWriter
	begun bool
}

// Write sends a part.
func (a *tempoAnswer) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find deadlines.
func (a *tempoAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (h *handler) writeTempoJSON(w http.ResponseWriter, r *http.Request, wrapped bool, pieces []*otlpdata.Batch) error {
	s := newStream(w, r)
	defer s.close()
	before, after := `{"batches":[`, "]}"
	if wrapped {
		before, after = `{"trace":{"resourceSpans":[`, tempoStatus(h.cut(pieces))
	}
	err := s.add(func(dst []byte) ([]byte, error) {
		out := otlpjson.Writer{Buf: append(dst, before...), Flush: s.spill}
		err := adjust.Walk(h.adjustment(false), &out, pieces...)
		out.End()
		return append(out.Buf, after...), err
	})
	if err != nil {
		return err
	}
	return s.flush()
}

// tempoStatus returns what follows the spans of a trace of which something is missing, or nothing.
func tempoStatus(missing string) string {
	if missing == "" {
		return `]},"status":"COMPLETE"}`
	}
	return string(otlpdata.AppendJSONString([]byte(`]},"status":"PARTIAL","message":`), missing)) + "}"
}

func (h *handler) writeTempoProtobuf(t *turn, w http.ResponseWriter, wrapped bool, pieces []*otlpdata.Batch) error {
	w.Header().Set("Content-Type", mediaProtobuf)
	send := func(part []byte) error {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("%w: %w", errUndelivered, err)
		}
		return nil
	}
	if !wrapped { // messages that follow each other are one
		return h.writeChunks(pieces, send)
	}
	spans, err := h.gatherChunks(t, pieces)
	if err != nil {
		return err
	}
	// TraceByIDResponse: trace = 1, status = 3 (PARTIAL = 1), message = 4.
	const trace, status, partial, message = 1<<3 | 2, 3 << 3, 1, 4<<3 | 2
	if err := send(binary.AppendUvarint([]byte{trace}, uint64(len(spans)))); err != nil {
		return err
	}
	if err := send(spans); err != nil {
		return err
	}
	missing := h.cut(pieces)
	if missing == "" {
		return nil
	}
	return send(append(binary.AppendUvarint([]byte{status, partial, message}, uint64(len(missing))), missing...))
}

func (h *handler) writeChunks(pieces []*otlpdata.Batch, send func([]byte) error) error {
	out := otlpchunks.NewWriter(flushAt, send)
	if err := adjust.Walk(h.adjustment(false), out, pieces...); err != nil {
		return err
	}
	return out.Finish()
}

// gatherChunks returns the encoded trace, for which the query accounts beside the trace itself: its length stands before it.
func (h *handler) gatherChunks(t *turn, pieces []*otlpdata.Batch) (spans []byte, err error) {
	if err := t.holdBytes(2 * t.held); err != nil {
		return nil, err
	}
	size := 0
	for _, b := range pieces {
		size += b.Size()
	}
	spans = make([]byte, 0, size+size/8)
	err = h.writeChunks(pieces, func(chunk []byte) error {
		spans = append(spans, chunk...)
		return nil
	})
	return spans, err
}
