package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/translate/pagetoken"
	"github.com/tracing-backend/tracing/internal/translate/queryfilter"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Defaults of searches.
const (
	DefaultSearchLimit    = 100            // traces
	DefaultSearchLookback = 48 * time.Hour // for APIs that do not require a start time
)

// ServiceKey is the resource attribute that names the service.
const ServiceKey = "service.name"

// Search is a search for traces with the given ids, or for traces with a span that meets all other
// conditions.
type Search struct {
	IDs                      []otlpdata.TraceID
	Set                      storequery.SpanSet // of the search language or a filter; nil if there is none
	SetText                  string             // what Set was parsed from; see SetPage
	Service, Operation       string
	From, To                 time.Time // of span starts, inclusive
	MinDuration, MaxDuration time.Duration
	Tags                     map[string]string
	Limit                    int // traces; 0 or less means Limits.Traces
	Raw                      bool

	Paged bool // the client requests pages
	After tracestore.Cursor
}

// SearchQuery returns the store query for a search. Its time range is exact to the nanosecond.
func (s *Slot) SearchQuery(search *Search) tracestore.Query {
	limit, most := search.Limit, s.backend.opts.Limits.Traces
	if limit <= 0 || limit > most {
		limit = most
	}
	return tracestore.Query{
		Tenant: s.Tenant(), From: search.From, To: search.To, Where: s.Language().WithNames(search.Where()), Limit: limit,
		Budget: s.Budget(), After: search.After,
	}
}

// Where returns the condition on one span of the trace.
func (s *Search) Where() tracestore.Expr {
	var all tracestore.And
	if s.Service != "" {
		all = append(all, equals(tracestore.Service, s.Service))
	}
	if s.Operation != "" {
		all = append(all, equals(tracestore.Name, s.Operation))
	}
	if s.MinDuration != 0 {
		all = append(all, WhereDuration(tracestore.Duration, tracestore.Ge, s.MinDuration))
	}
	if s.MaxDuration != 0 {
		all = append(all, WhereDuration(tracestore.Duration, tracestore.Le, s.MaxDuration))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		all = append(all, storequery.TagCondition(key, s.Tags[key]))
	}
	return all
}

// SetFilter sets the condition of a filter, which replaces all other conditions on spans. text is
// the filter in any form.
func (s *Search) SetFilter(l traceql.Language, where tracestore.Expr, text string) error {
	if s.Set != nil || len(s.Where().(tracestore.And)) > 0 {
		return queryfilter.ErrNotAlone
	}
	s.Set, s.SetText = storequery.Select{Where: l.WithNames(where)}, text
	return nil
}

var errPageSize = errors.New("page size must not be negative")

// SetPage requests one page of the results. A size of 0 means Limit. token is "" or a result of
// NextPage for the same search and tenant. All conditions must be set before.
func (s *Search) SetPage(size int, token, tenant string) (err error) {
	if size < 0 {
		return errPageSize
	}
	if size > 0 {
		s.Limit = size
	}
	s.Paged = true
	s.After, err = pagetoken.Parse(token, s.identity(tenant))
	return err
}

// NextPage returns the token of the page after a result, or "" if that is the last page or if the
// client does not request pages.
func (s *Search) NextPage(tenant string, o *tracestore.Outcome) string {
	if !s.Paged {
		return ""
	}
	return pagetoken.New(o.Next, s.identity(tenant))
}

// identity returns the tenant and all conditions of the search as text.
func (s *Search) identity(tenant string) []byte {
	b := fmt.Appendf(nil, "%q %q %q %q %d %d %d %d", tenant, s.Service, s.Operation, s.SetText,
		s.From.UnixNano(), s.To.UnixNano(), s.MinDuration, s.MaxDuration)
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		b = fmt.Appendf(b, " %q %q", key, s.Tags[key])
	}
	return b
}

// WhereDuration returns a condition that compares a duration of the span or its trace.
func WhereDuration(p tracestore.Place, op tracestore.Op, d time.Duration) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: op, Value: tracestore.Number(float64(d.Nanoseconds()))}
}

func equals(p tracestore.Place, value string) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}

// IncompleteText begins each message about an incomplete result.
const IncompleteText = "result is incomplete: "

// IncompleteMessage returns the message about an incomplete result, or "" if there are no reasons.
func IncompleteMessage(reasons tracestore.Reasons) string {
	if reasons.Complete() {
		return ""
	}
	return IncompleteText + reasons.Text()
}

// Incomplete returns a message that says why traces may be missing, or "" if the result is
// complete. limit is the limit of the query that was run.
func (s *Search) Incomplete(o *tracestore.Outcome, limit int) string {
	if o.Complete() && o.Next.Set && limit != s.Limit && !s.Paged {
		return fmt.Sprintf(IncompleteText+"a response contains at most max_limit (%d) traces", limit)
	}
	return IncompleteMessage(o.Reasons)
}
