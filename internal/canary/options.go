package canary

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Limits of what can be asked for.
const (
	minInterval   = time.Millisecond
	maxAges       = 32
	maxRemembered = 10_000_000 // traces, of 64 bytes each
)

// Options say what a canary does.
type Options struct {
	OTLP, Query string        // URLs above /v1/traces and /api
	Header      http.Header   // of all requests; keys are in canonical form
	Interval    time.Duration // between traces, which are generated from multiples of it
	// Ages are how long after its acknowledgement a trace is read, ascending; at least one.
	Ages     []time.Duration
	Remember int           // how many traces are remembered for readings
	Duration time.Duration // how long traces are written; 0: until the context ends
	Traces   int           // how many are tried to write; 0: any number
	Seed     uint64
	// IgnoredTags are keys of tags that something on the way adds.
	IgnoredTags []string
}

// validate reports every value that cannot work, in the words of the command's flags.
func (o *Options) validate() error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(isURL(o.OTLP), "--otlp: %q is no URL; write http://localhost:4318 (OTLP over HTTP)", o.OTLP)
	must(isURL(o.Query), "--query: %q is no URL; write http://localhost:16686", o.Query)
	must(o.Interval >= minInterval, "--interval must be at least %s, not %s", minInterval, o.Interval)
	must(len(o.Ages) <= maxAges, "--ages: %d are more than %d", len(o.Ages), maxAges)
	must(slices.IsSorted(o.Ages), "--ages must ascend from --read-after, as 10s,1m,1h does")
	must(o.Traces >= 0, "--once must not be below 0")
	must(o.Remember > 0 && o.Remember <= maxRemembered, "--remember must be from 1 to %d, not %d", maxRemembered, o.Remember)
	return errors.Join(errs...)
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return false
	}
	return u.User == nil && u.RawQuery == "" && u.Fragment == "" // which would be shown, or sent with no request
}

// base returns a URL to which paths can be appended.
func base(u string) string { return strings.TrimRight(u, "/") }
