package canary

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// Limits of the options.
const (
	minInterval   = time.Millisecond
	maxAges       = 32
	maxRemembered = 10_000_000 // traces of 64 bytes each
)

// Options are the settings of a canary.
type Options struct {
	OTLP, Query string        // URLs without /v1/traces and /api
	Header      http.Header   // for all requests, with canonical keys
	Interval    time.Duration // between traces; they are generated from its multiples
	// Ages are the times after its acknowledgement at which a trace is read, ascending; at least
	// one.
	Ages     []time.Duration
	Remember int           // maximum number of traces remembered for readings
	Duration time.Duration // time during which traces are written; 0: until the context ends
	Traces   int           // number of attempted writes; 0: unlimited
	Seed     uint64
	// IgnoredTags are keys of tags that other programs may add.
	IgnoredTags []string
}

// validate reports every invalid value, named after the command's flags.
func (o *Options) validate() error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(isURL(o.OTLP), "--otlp: %q is not a URL; write http://localhost:4318 (OTLP over HTTP)", pipeline.MaskURLs(o.OTLP))
	must(isURL(o.Query), "--query: %q is not a URL; write http://localhost:16686", pipeline.MaskURLs(o.Query))
	must(o.Interval >= minInterval, "--interval must be at least %s, not %s", minInterval, o.Interval)
	must(len(o.Ages) <= maxAges, "--ages: %d ages, maximum %d", len(o.Ages), maxAges)
	must(slices.IsSorted(o.Ages), "--ages must ascend from --read-after, as 10s,1m,1h does")
	must(o.Traces >= 0, "--once must not be negative")
	must(o.Remember > 0 && o.Remember <= maxRemembered, "--remember must be from 1 to %d, not %d", maxRemembered, o.Remember)
	return errors.Join(errs...)
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return false
	}
	return u.User == nil && u.RawQuery == "" && u.Fragment == "" // they would be logged, or not be sent
}

// base returns a URL to which paths can be appended.
func base(u string) string { return strings.TrimRight(u, "/") }
