package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// ErrNegative is the error for a number that must not be negative.
var ErrNegative = errors.New("must not be negative")

// ParamError returns an error about a parameter, for the client.
func ParamError(name string, err error) error {
	return fmt.Errorf("unable to parse param '%s': %w", name, err)
}

// Query returns the parameters of a request.
func Query(r *http.Request) (url.Values, error) { return url.ParseQuery(r.URL.RawQuery) }

// MicrosParam parses microseconds since the Unix epoch.
func MicrosParam(v url.Values, name string, absent time.Time) (time.Time, error) {
	p := v.Get(name)
	if p == "" {
		return absent, nil
	}
	us, err := strconv.ParseInt(p, 10, 64)
	if err != nil {
		return time.Time{}, ParamError(name, err)
	}
	return time.UnixMicro(us), nil
}

// MillisParam parses a number of milliseconds.
func MillisParam(v url.Values, name string, absent int64) (int64, error) {
	p := v.Get(name)
	if p == "" {
		return absent, nil
	}
	ms, err := strconv.ParseInt(p, 10, 64)
	if err != nil {
		return 0, ParamError(name, err)
	}
	return ms, nil
}

// DurationParam parses a duration like `1.5s`. An absent parameter is 0.
func DurationParam(v url.Values, name string) (time.Duration, error) {
	p := v.Get(name)
	if p == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(p)
	if err != nil {
		return 0, ParamError(name, err)
	}
	return d, nil
}

// BoolParam parses a boolean. An absent parameter is false.
func BoolParam(v url.Values, name string) (bool, error) {
	p := v.Get(name)
	if p == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(p)
	if err != nil {
		return false, ParamError(name, err)
	}
	return b, nil
}

// AdmitTrace reads a request for one trace, with the path value `id`, and admits it as op. If it
// cannot, it responds with an error and returns a nil Slot.
func AdmitTrace(
	b *core.Backend, op core.Operation, w http.ResponseWriter, r *http.Request,
) (ref tracestore.TraceRef, raw bool, s *core.Slot) {
	ref, raw, err := parseTraceRequest(r)
	if err != nil {
		WriteError(w, http.StatusBadRequest, err.Error())
		return ref, raw, nil
	}
	if s, err = b.Admit(r.Context(), op); err != nil {
		Fail(b, w, r, err)
		return ref, raw, nil
	}
	return ref, raw, s
}

func parseTraceRequest(r *http.Request) (ref tracestore.TraceRef, raw bool, err error) {
	v, err := Query(r)
	if err != nil {
		return ref, false, err
	}
	if ref.ID, err = ParsePathID(r.PathValue("id")); err != nil {
		return ref, false, err
	}
	if ref.From, err = MicrosParam(v, "start", time.Time{}); err != nil {
		return ref, false, err
	}
	if ref.To, err = MicrosParam(v, "end", time.Time{}); err != nil {
		return ref, false, err
	}
	raw, err = BoolParam(v, "raw")
	return ref, raw, err
}
