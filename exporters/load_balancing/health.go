package loadbalancing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// health reports the exporter as degraded while backends fail or cannot be resolved.
type health struct {
	report func(error)

	mu         sync.Mutex // held while reporting, to keep reports in order
	total      int        // number of backends
	failing    []failure  // in the order in which they failed
	resolution error
	reported   string // reasons of the last report; "": healthy
}

type failure struct {
	backend *backend
	err     error
}

// setBackend reports a backend as failing or, with nil, as recovered.
func (h *health) setBackend(b *backend, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.gone {
		return
	}
	h.drop(b)
	if err != nil {
		h.failing = append(h.failing, failure{b, err})
	}
	h.tell()
}

// forget ends the reports of a backend that was removed.
func (h *health) forget(b *backend) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b.gone = true
	h.drop(b)
}

func (h *health) drop(b *backend) {
	h.failing = slices.DeleteFunc(h.failing, func(f failure) bool { return f.backend == b })
}

// setTotal sets the number of backends after an update.
func (h *health) setTotal(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total = n
	h.tell()
}

// setResolution reports the result of a resolution.
func (h *health) setResolution(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resolution = err
	h.tell()
}

// maxReasons is the maximum number of backends whose errors are part of a report.
const maxReasons = 3

// tell reports the current state.
func (h *health) tell() {
	var reasons []string
	if h.resolution != nil {
		reasons = append(reasons, fmt.Sprintf("%v; using the backends of the last response (%d)", h.resolution, h.total))
	}
	if n := len(h.failing); n > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of %d backends do not accept spans", n, h.total))
		for _, f := range h.failing[:min(n, maxReasons)] {
			reasons = append(reasons, f.err.Error())
		}
	}
	text := strings.Join(reasons, "; ")
	switch {
	case text == h.reported:
		return
	case text == "":
		h.report(nil)
	default:
		h.report(errors.New(text))
	}
	h.reported = text
}
