package tempo

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/translate/otlpjson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const mediaProtobuf = "application/protobuf"

// warningHeader says which spans of a trace cannot be read.
const warningHeader = "Tracing-Warning"

// trace serves GET /tempo/api/traces/{id} with the spans: `{"batches":[...]}`, or an OTLP
// TracesData message if the client accepts protobuf.
func (a *API) trace(w http.ResponseWriter, r *http.Request) { a.answerTrace(w, r, false) }

// traceV2 serves GET /tempo/api/v2/traces/{id} with the spans and whether they are complete: a
// message TraceByIDResponse of tempo.proto (tempopb), as JSON or protobuf.
func (a *API) traceV2(w http.ResponseWriter, r *http.Request) { a.answerTrace(w, r, true) }

func (a *API) answerTrace(w http.ResponseWriter, r *http.Request, wrapped bool) {
	id, err := parseTraceID(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	slot, err := a.backend.Admit(r.Context(), core.OpGetTrace)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer slot.Release()
	out := &trackedWriter{ResponseWriter: w}
	err = slot.Measure(func() (int, error) {
		pieces, damage, err := slot.Trace(tracestore.TraceRef{ID: id})
		incomplete := core.IncompleteMessage(damage)
		if incomplete != "" {
			w.Header().Set(warningHeader, incomplete) // only the second version has a field for it
		}
		switch {
		case err != nil:
			return 0, err
		case len(pieces) == 0:
			return 0, core.ErrTraceNotFound
		case strings.Contains(r.Header.Get("Accept"), mediaProtobuf):
			return 1, a.writeProtobuf(slot, out, wrapped, pieces, cmp.Or(incomplete, a.truncated(pieces)))
		}
		return 1, a.writeJSON(out, r, wrapped, pieces, cmp.Or(incomplete, a.truncated(pieces)))
	})
	switch {
	case err == nil, errors.Is(err, core.ErrUndelivered):
	case errors.Is(err, core.ErrTraceNotFound):
		http.Error(w, core.ErrTraceNotFound.Error(), http.StatusNotFound)
	case out.begun:
		a.backend.Abort(err)
	default:
		a.fail(w, r, err)
	}
}

// parseTraceID returns the id of the trace. The time range is checked but not used, because a trace
// is always shown as a whole.
func parseTraceID(r *http.Request) (id otlpdata.TraceID, err error) {
	v, err := httpapi.Query(r)
	if err != nil {
		return id, err
	}
	if id, err = core.ParseTraceID(r.PathValue("id")); err != nil {
		return id, err
	}
	_, err = windowParams(v)
	return id, err
}

// truncated returns a message if a trace is too long to be shown as a whole, or "".
func (a *API) truncated(pieces []*otlpdata.Batch) string {
	spans := 0
	for _, b := range pieces {
		spans += b.Len()
	}
	if spans <= a.backend.Limits().TraceSize {
		return ""
	}
	return fmt.Sprintf("the trace has more than max_trace_size (%d) spans; the first ones are shown", a.backend.Limits().TraceSize)
}

// trackedWriter records whether a part of the response was sent, after which the status code cannot
// change.
type trackedWriter struct {
	http.ResponseWriter
	begun bool
}

// Write sends a part.
func (w *trackedWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeJSON responds with the trace as JSON. missing says why it is incomplete, or "".
func (a *API) writeJSON(w http.ResponseWriter, r *http.Request, wrapped bool, pieces []*otlpdata.Batch, missing string) error {
	s := httpapi.NewStream(w, r)
	defer s.Close()
	before, after := `{"batches":[`, "]}"
	if wrapped {
		before, after = `{"trace":{"resourceSpans":[`, jsonStatus(missing)
	}
	err := s.Add(func(dst []byte) ([]byte, error) {
		out := otlpjson.Writer{Buf: append(dst, before...), Flush: s.Spill}
		err := adjust.Walk(a.backend.Adjustment(false), &out, pieces...)
		out.End()
		return append(out.Buf, after...), err
	})
	if err != nil {
		return err
	}
	return s.Flush()
}

// jsonStatus returns the end of the response after the spans. missing says why they are incomplete,
// or "".
func jsonStatus(missing string) string {
	if missing == "" {
		return `]},"status":"COMPLETE"}`
	}
	return string(otlpdata.AppendJSONString([]byte(`]},"status":"PARTIAL","message":`), missing)) + "}"
}

func (a *API) writeProtobuf(slot *core.Slot, w http.ResponseWriter, wrapped bool, pieces []*otlpdata.Batch, missing string) error {
	w.Header().Set("Content-Type", mediaProtobuf)
	send := func(part []byte) error {
		_, err := w.Write(part)
		return core.Undelivered(err)
	}
	if !wrapped { // concatenated messages are one message
		return a.writeChunks(pieces, send)
	}
	spans, err := a.gatherChunks(slot, pieces)
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
	if missing == "" {
		return nil
	}
	return send(append(binary.AppendUvarint([]byte{status, partial, message}, uint64(len(missing))), missing...))
}

func (a *API) writeChunks(pieces []*otlpdata.Batch, send func([]byte) error) error {
	out := otlpchunks.NewWriter(httpapi.FlushSize, send)
	if err := adjust.Walk(a.backend.Adjustment(false), out, pieces...); err != nil {
		return err
	}
	return out.Finish()
}

// gatherChunks returns the encoded trace, which is written after its length. It doubles the memory
// that the query holds for the stored trace.
func (a *API) gatherChunks(slot *core.Slot, pieces []*otlpdata.Batch) (spans []byte, err error) {
	if err := slot.HoldMore(slot.Held()); err != nil {
		return nil, err
	}
	size := 0
	for _, b := range pieces {
		size += b.Size()
	}
	spans = make([]byte, 0, size+size/8)
	err = a.writeChunks(pieces, func(chunk []byte) error {
		spans = append(spans, chunk...)
		return nil
	})
	return spans, err
}
