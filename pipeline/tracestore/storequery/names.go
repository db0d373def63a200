package storequery

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// SelectServices returns the service names that a query selects from a sorted list. The result is a
// part of the list. more reports whether the limit left out others.
func SelectServices(sorted []string, q tracestore.NameQuery) (selected []string, more bool) {
	return selectNames(sorted, q, func(name string) string { return name })
}

// SelectOperations is like SelectServices for operations, sorted by name.
func SelectOperations(sorted []tracestore.Operation, q tracestore.NameQuery) (selected []tracestore.Operation, more bool) {
	return selectNames(sorted, q, func(op tracestore.Operation) string { return op.Name })
}

func selectNames[T any](sorted []T, q tracestore.NameQuery, name func(T) string) (selected []T, more bool) {
	from, _ := slices.BinarySearchFunc(sorted, q.Prefix, func(t T, prefix string) int { return cmp.Compare(name(t), prefix) })
	sorted = sorted[from:]
	n := 0
	for n < len(sorted) && strings.HasPrefix(name(sorted[n]), q.Prefix) {
		if q.Limit > 0 && n == q.Limit {
			return sorted[:n], true
		}
		n++
	}
	return sorted[:n], false
}
