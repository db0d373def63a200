package route

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Query queries the store. It returns the data of the response, and why the response is incomplete.
type Query func(slot *core.Slot) (data any, incomplete tracestore.Reasons, err error)

// Handler serves requests whose response is one JSON value. parse reads the parameters; its errors
// are for the client.
func Handler(b *core.Backend, op core.Operation, parse func(ctx context.Context, v url.Values) (Query, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := httpapi.Query(r)
		var run Query
		if err == nil {
			run, err = parse(r.Context(), v)
		}
		if err != nil {
			httpapi.WriteError(w, statusOf(err), err.Error())
			return
		}
		slot, err := b.Admit(r.Context(), op)
		if err != nil {
			httpapi.Fail(b, w, r, err)
			return
		}
		defer slot.Release()
		slot.Describe(v.Get("q"))
		var data any
		var incomplete tracestore.Reasons
		err = slot.Measure(func() (_ int, err error) {
			data, incomplete, err = run(slot)
			return lengthOf(data), err
		})
		if err != nil {
			httpapi.Fail(b, w, r, err)
			return
		}
		WriteData(b, w, r, data, incomplete)
	}
}

// ErrUnsupported is matched by the errors of requests that the store does not support.
var ErrUnsupported = errors.New("store cannot")

func statusOf(err error) int {
	if errors.Is(err, ErrUnsupported) {
		return http.StatusNotImplemented
	}
	return http.StatusBadRequest
}

// WriteData responds with one value. incomplete says why it is incomplete.
func WriteData(b *core.Backend, w http.ResponseWriter, r *http.Request, data any, incomplete tracestore.Reasons) {
	text, err := json.Marshal(data)
	if err != nil {
		httpapi.Fail(b, w, r, err)
		return
	}
	var footer httpapi.Footer
	footer.AddError(core.IncompleteMessage(incomplete))
	l := httpapi.NewList(w, r)
	defer l.Close()
	l.Stream().Buf = append(l.Stream().Buf, text...)
	b.LogUndelivered(l.Finish("", footer))
}

// Nanos is a number of nanoseconds that is a string in JSON.
type Nanos uint64

// MarshalJSON implements json.Marshaler.
func (n Nanos) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(n), 10), '"'), nil
}

// NanosOf returns a time as nanoseconds since the Unix epoch, 0 for earlier times.
func NanosOf(t time.Time) Nanos { return Nanos(max(t.UnixNano(), 0)) }

// Duration rounds a duration in nanoseconds. It is limited to the maximum of an int64.
func Duration(ns float64) int64 {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Round(ns))
}

// Estimate returns the estimated total if a share of all items was counted.
func Estimate(counted uint64, share float64) uint64 {
	if share <= 0 || share >= 1 {
		return counted
	}
	return uint64(min(math.Round(float64(counted)/share), math.MaxInt64))
}

// Listing is implemented by data that lists names or traces, which are counted in the metrics of
// queries.
type Listing interface {
	// Length returns the number of elements.
	Length() int
}

func lengthOf(data any) int {
	if l, ok := data.(Listing); ok {
		return l.Length()
	}
	return 0
}
