package delivery

import (
	"strings"
	"sync"
)

// Limits of the metrics with a label per service.
const (
	// maxServiceLabels is the maximum number of label values. Further services share otherServices.
	maxServiceLabels = 4000
	otherServices    = "other-services"
	// maxServiceNames is the maximum number of cached names; several may have the same label value.
	maxServiceNames = 4 * maxServiceLabels
	// maxServiceLength is the maximum length of a label value in bytes.
	maxServiceLength = 256
)

// serviceLabels converts names of services to label values: lower case, with `_` for all characters
// but a-z, 0-9, `-` and `.`. It returns at most maxServiceLabels different values. It is safe for
// concurrent use.
type serviceLabels struct {
	mu     sync.RWMutex
	names  map[string]string
	labels map[string]bool
}

func (l *serviceLabels) label(service string) string {
	l.mu.RLock()
	label, ok := l.names[service]
	l.mu.RUnlock()
	if ok {
		return label
	}
	label = normalizeService(service)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names, l.labels = map[string]string{}, map[string]bool{otherServices: true}
	}
	if !l.labels[label] {
		if len(l.labels) >= maxServiceLabels {
			return otherServices
		}
		l.labels[label] = true
	}
	if len(l.names) < maxServiceNames {
		l.names[strings.Clone(service)] = label
	}
	return label
}

func normalizeService(s string) string {
	b := []byte(s[:min(len(s), maxServiceLength)])
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z':
			b[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.':
		default:
			b[i] = '_'
		}
	}
	return string(b)
}
