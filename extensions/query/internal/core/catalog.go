package core

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Services admits a query for the names of all services, sorted.
func (b *Backend) Services(ctx context.Context) (names []string, err error) {
	s, err := b.Admit(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Release()
	err = b.Measure(OpGetServices, func() (_ int, err error) {
		names, err = s.Services()
		return len(names), err
	})
	return names, err
}

// Operations admits a query for the operations of a service, sorted. kind limits them to one span
// kind unless it is "".
func (b *Backend) Operations(ctx context.Context, service, kind string) (ops []tracestore.Operation, err error) {
	s, err := b.Admit(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Release()
	err = b.Measure(OpGetOperations, func() (_ int, err error) {
		ops, err = s.Operations(service, kind)
		return len(ops), err
	})
	return ops, err
}

// Services returns the names of all services, sorted.
func (s *Slot) Services() ([]string, error) { return s.Store().Services(s.ctx, s.Tenant()) }

// Operations returns the operations of a service, sorted. kind limits them to one span kind unless
// it is "".
func (s *Slot) Operations(service, kind string) ([]tracestore.Operation, error) {
	return s.Store().Operations(s.ctx, s.Tenant(), service, kind)
}

// MaxListedText is the maximum length in bytes of a name or value that is listed for users to
// choose from.
const MaxListedText = 1 << 10

// Listed reserves memory for texts that a store listed and removes those longer than MaxListedText.
// It does not change the slice, which the store may share.
func (s *Slot) Listed(texts []string) ([]string, error) {
	size := int64(0)
	for _, text := range texts {
		size += int64(len(text))
	}
	if err := s.HoldMore(size); err != nil {
		return nil, err
	}
	tooLong := func(text string) bool { return len(text) > MaxListedText }
	if slices.ContainsFunc(texts, tooLong) {
		texts = slices.DeleteFunc(slices.Clone(texts), tooLong)
	}
	return texts, nil
}
