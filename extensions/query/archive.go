package query

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Archive is a store that traces are copied to, to be kept longer, and read from.
type Archive interface {
	tracestore.Reader
	pipeline.Consumer
}

// archiveTrace answers POST /api/archive/{id}.
func (h *handler) archiveTrace(w http.ResponseWriter, r *http.Request) {
	ref, _, t := h.admitTrace(w, r)
	if t == nil {
		return
	}
	defer t.done()
	err := h.measure(opArchiveTrace, func() (int, error) { return t.copyToArchive(server.Tenant(r.Context()), ref) })
	switch {
	case errors.Is(err, errTraceNotFound):
		writeError(w, http.StatusNotFound, err.Error())
	case err != nil:
		h.failed(w, r, err)
	default:
		l := newList(w, r)
		defer l.close()
		h.finish(l, "[]", tail{Errors: []apiError{}})
	}
}

// copyToArchive copies a trace, as it is stored and however large it is, and returns how many traces that were: one, or none with
// errTraceNotFound. When it fails a part may be archived; it can be repeated, since duplicates are shown once. A trace that is only in
// the archive is left there.
func (t *turn) copyToArchive(tenant string, ref tracestore.TraceRef) (int, error) {
	b := t.backend
	if b.archive == nil {
		return 0, errNoArchive
	}
	found := false
	for piece, err := range b.store.Traces(t, tenant, []tracestore.TraceRef{ref}) {
		if err == nil {
			err = t.hold(piece.Spans)
		}
		if err != nil {
			return 0, err
		}
		found = true
		if err := b.archive.Consume(t, piece.Spans); err != nil {
			return 0, fmt.Errorf("archiving a trace: %w", err)
		}
	}
	if found {
		return 1, nil
	}
	for _, err := range b.archive.Traces(t, tenant, []tracestore.TraceRef{ref}) {
		return 1, err
	}
	return 0, errTraceNotFound
}
