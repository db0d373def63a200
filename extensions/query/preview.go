package query

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/internal/webui"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	// previewTime is the maximum time to read a trace for a preview. Chat programs wait for a few
	// seconds.
	previewTime        = 2 * time.Second
	maxPreviewName     = 80 // characters of a name
	maxPreviewServices = 5  // services in a preview
)

// previews returns the function that describes traces in previews of links.
func previews(b *core.Backend) func(*http.Request, string) (webui.Preview, bool) {
	return func(r *http.Request, trace string) (p webui.Preview, ok bool) {
		// Browsers show no preview. They send the first header only over https and to localhost.
		if r.Header.Get("Sec-Fetch-Mode") != "" || r.Header.Get("Upgrade-Insecure-Requests") != "" {
			return p, false
		}
		sum, err := summarize(r.Context(), b, trace)
		if err != nil || sum.Spans == 0 {
			return p, false
		}
		return previewOf(&sum), true
	}
}

// summarize returns the summary of a trace, without spans if the trace does not exist.
func summarize(ctx context.Context, b *core.Backend, trace string) (sum tracestore.Summary, err error) {
	id, err := core.ParseTraceID(trace)
	if err != nil {
		return sum, err
	}
	ctx, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	slot, err := b.Admit(ctx, core.OpGetTrace)
	if err != nil {
		return sum, err
	}
	defer slot.Release()
	hold := func(spans, textBytes int) error { return slot.SetHeld(int64(spans)*summaryMemory + int64(textBytes)) }
	err = slot.Measure(func() (int, error) {
		_, err := slot.Outline(tracestore.TraceRef{ID: id}, hold, func(spans []tracestore.SummarySpan) {
			sum = storequery.SummarizeSpans(id, spans)
		})
		return min(sum.Spans, 1), err
	})
	return sum, err
}

// summaryMemory is the approximate number of bytes that it takes to summarize a span, without
// texts.
const summaryMemory = 300

// previewOf describes a trace by names, numbers and times, without attributes, which may be
// confidential.
func previewOf(s *tracestore.Summary) webui.Preview {
	title := fmt.Sprintf("%s: %s, %s", previewName(s.RootService), previewName(s.RootName), shortDuration(time.Duration(s.End-s.Start)))
	if s.Errors > 0 {
		title += ", " + number(s.Errors, "error")
	}
	services := slices.Clone(s.Services)
	slices.SortStableFunc(services, func(a, b tracestore.ServiceSummary) int { return cmp.Compare(b.Errors, a.Errors) })
	var names []string
	for _, service := range services[:min(len(services), maxPreviewServices)] {
		name := previewName(service.Name)
		if service.Errors > 0 {
			name += " (" + number(service.Errors, "error") + ")"
		}
		names = append(names, name)
	}
	if more := len(services) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("%s of %s: %s.", number(s.Spans, "span"), number(len(services), "service"), strings.Join(names, ", "))
	if s.Start > 0 {
		text += " Started " + storequery.TimeOf(s.Start).UTC().Format("2006-01-02 15:04:05 UTC") + "."
	}
	return webui.Preview{Title: title, Text: text}
}

// previewName returns a name without what looks like the query of a URL, shortened.
func previewName(name string) string {
	name, _, _ = strings.Cut(name, "?")
	if utf8.RuneCountInString(name) > maxPreviewName {
		name = string([]rune(name)[:maxPreviewName]) + "…"
	}
	return name
}

// shortDuration returns a duration with three digits, or in seconds.
func shortDuration(d time.Duration) string {
	unit := time.Duration(1)
	for unit < time.Second && d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}

// number returns a number of things.
func number(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
