package route

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
)

// DefaultLookback is the default length of a time range.
const DefaultLookback = time.Hour

// WindowParams parses `start` and `end`.
func WindowParams(v url.Values, now time.Time) (w core.Window, err error) {
	if w.To, err = NanosParam(v, "end", now); err != nil {
		return w, err
	}
	if w.From, err = NanosParam(v, "start", w.To.Add(-DefaultLookback)); err != nil {
		return w, err
	}
	if w.To.Before(w.From) {
		return w, errors.New("'start' must not be after 'end'")
	}
	return w, nil
}

// NanosParam parses nanoseconds since the Unix epoch, up to the year 2262.
func NanosParam(v url.Values, name string, absent time.Time) (time.Time, error) {
	p := v.Get(name)
	if p == "" {
		return absent, nil
	}
	ns, err := strconv.ParseInt(p, 10, 64)
	if err == nil && ns < 0 {
		err = httpapi.ErrNegative
	}
	if err != nil {
		return time.Time{}, httpapi.ParamError(name, err)
	}
	return time.Unix(0, ns), nil
}

// CountParam parses a number from 1 to maximum.
func CountParam(v url.Values, name string, absent, maximum int) (int, error) {
	p := v.Get(name)
	if p == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(p)
	if err == nil && (n < 1 || n > maximum) {
		err = fmt.Errorf("must be from 1 to %d", maximum)
	}
	if err != nil {
		return 0, httpapi.ParamError(name, err)
	}
	return n, nil
}

// BoolParam parses 1, 0, true or false. An absent parameter is false.
func BoolParam(v url.Values, name string) (bool, error) {
	p := v.Get(name)
	if p == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(p)
	if err != nil {
		return false, httpapi.ParamError(name, errors.New("must be 1 or 0"))
	}
	return b, nil
}
