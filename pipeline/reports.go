package pipeline

import (
	"errors"
	"strings"
	"sync"
)

// NotReady marks the reason of a report, see [Settings.Report]: until the component reports
// otherwise, the process is not ready. Readiness probes then fail and load balancers send requests
// elsewhere, so the component must detect by itself when the reason ends. NotReady(nil) is nil.
func NotReady(err error) error {
	if err == nil {
		return nil
	}
	return &notReadyError{err}
}

// IsNotReady reports whether err is marked with [NotReady].
func IsNotReady(err error) bool {
	var n *notReadyError
	return errors.As(err, &n)
}

type notReadyError struct{ err error }

func (e *notReadyError) Error() string { return e.err.Error() }
func (e *notReadyError) Unwrap() error { return e.err }

// Reports joins the reports of several parts of a component, so that a part that recovers does not
// hide that another one is degraded. It is safe for concurrent use.
type Reports struct {
	report func(error)

	mu    sync.Mutex // held while reporting, to keep reports in order
	names []string
	parts map[string]error // nil: healthy
}

// NewReports returns Reports that pass joined reports to report, which is usually
// [Settings.Report].
func NewReports(report func(error)) *Reports {
	return &Reports{report: report, parts: map[string]error{}}
}

// Part returns the function by which a part of the component reports that it is degraded or, with
// nil, that it has recovered.
func (r *Reports) Part(name string) func(error) {
	return func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		before, known := r.parts[name]
		if !known {
			r.names = append(r.names, name)
		}
		r.parts[name] = err
		if before != nil || err != nil {
			r.report(r.joined())
		}
	}
}

// joined returns the reasons of all degraded parts, or nil.
func (r *Reports) joined() error {
	var all joinedReasons
	for _, name := range r.names {
		if err := r.parts[name]; err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// joinedReasons are several reasons in one line.
type joinedReasons []error

// Error returns the reasons, separated by semicolons.
func (j joinedReasons) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the reasons.
func (j joinedReasons) Unwrap() []error { return j }
