package uiapi

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

// maxCriticalPaths is the maximum number of traces in one request for critical paths. Together they
// may have maxMatchedSpans spans; further traces are left out, and the response says so.
const maxCriticalPaths = 100

// criticalPaths are the critical paths of traces by service. Traces that were not read are missing.
type criticalPaths struct {
	Paths []criticalPath `json:"paths"`
}

type criticalPath struct {
	TraceID string `json:"traceID"`
	// Services holds the time of each service on the path in nanoseconds, the longest first.
	Services []serviceTime `json:"services"`
	// Gap is the time in which no span runs.
	Gap uint64 `json:"gap"`
}

type serviceTime struct {
	Name string `json:"name"`
	Time uint64 `json:"time"`
}

// critical serves GET /api/ui/v1/critical: the critical paths of listed traces by service.
func (a *API) critical(_ context.Context, v url.Values) (route.Query, error) {
	ids, err := traceIDsParam(v, "ids")
	if err != nil {
		return nil, err
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) { return readCriticalPaths(slot, ids) }, nil
}

// traceIDsParam parses a list of trace ids, separated by commas.
func traceIDsParam(v url.Values, name string) ([]otlpdata.TraceID, error) {
	texts := strings.SplitN(v.Get(name), ",", maxCriticalPaths+1)
	if len(texts) > maxCriticalPaths {
		return nil, httpapi.ParamError(name, fmt.Errorf("more than %d ids", maxCriticalPaths))
	}
	ids := make([]otlpdata.TraceID, len(texts))
	for i, text := range texts {
		var err error
		if ids[i], err = core.ParseTraceID(text); err != nil {
			return nil, httpapi.ParamError(name, err)
		}
	}
	return ids, nil
}

func readCriticalPaths(slot *core.Slot, ids []otlpdata.TraceID) (*criticalPaths, tracestore.Reasons, error) {
	out := &criticalPaths{Paths: []criticalPath{}}
	var tree callpath.Tree
	left, omitted := maxMatchedSpans, 0
	incomplete, err := eachTrace(slot, ids, &left, func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error {
		limit := min(left, slot.Limits().TraceSize)
		if left -= len(spans); len(spans) > limit {
			omitted++
			return nil
		}
		out.Paths = append(out.Paths, criticalPathOf(&tree, id, spans))
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if omitted > 0 {
		incomplete.Add(tracestore.Reason{Kind: tracestore.ReasonLimit,
			Text: fmt.Sprintf("the critical paths of %d traces are left out (limit is %d spans for a trace, and %d for a request)",
				omitted, slot.Limits().TraceSize, maxMatchedSpans)})
	}
	return out, incomplete, nil
}

// eachTrace calls take with the spans of each existing trace. If a trace has more than left spans,
// take may get only some of them, but more than left. If the store supports it, several traces are
// read in one request.
func eachTrace(slot *core.Slot, ids []otlpdata.TraceID, left *int, take func(otlpdata.TraceID, []tracestore.SummarySpan) error) (
	incomplete tracestore.Reasons, _ error,
) {
	note := func(err error) (stop bool, _ error) {
		if tracestore.IsOutOfMemory(err) || errors.Is(err, context.DeadlineExceeded) {
			incomplete.Add(tracestore.Reason{Kind: tracestore.KindOf(err), Text: "not all critical paths were read: " + err.Error()})
			return true, nil
		}
		damage, err := tracestore.DamageOf(err)
		incomplete.Add(damage...)
		return err != nil, err
	}
	ctx, tenant, size := slot.Context(), slot.Tenant(), slot.Limits().TraceSize
	if heads, ok := core.SlotAs[callpath.HeadReader](slot); ok {
		_, err := note(heads.EachHeads(ctx, tenant, ids, min(*left, size), take))
		return incomplete, err
	}
	memory, _ := tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer memory.Release()
	hold := func(spans, textBytes int) error {
		return memory.Resize(int64(spans)*callpath.SpanMemory + int64(textBytes))
	}
	for _, id := range ids {
		stop, err := note(slot.Store().Outline(ctx, tenant, id, max(min(*left, size), 1), hold,
			func(spans []tracestore.SummarySpan) error { return take(id, spans) }))
		if stop || err != nil {
			return incomplete, err
		}
	}
	return incomplete, nil
}

func criticalPathOf(tree *callpath.Tree, id otlpdata.TraceID, spans []tracestore.SummarySpan) criticalPath {
	tree.Build(spans)
	out := criticalPath{TraceID: hex.EncodeToString(id[:]), Services: []serviceTime{}}
	times := make(map[string]uint64)
	tree.CriticalPath(func(span int, time uint64) {
		if span < 0 {
			out.Gap += time
			return
		}
		times[spans[span].Service] += time
	})
	for name, time := range times {
		out.Services = append(out.Services, serviceTime{strings.Clone(name), time})
	}
	slices.SortFunc(out.Services, func(a, b serviceTime) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
	return out
}
