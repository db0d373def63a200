package core

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Names is a list of names for a response.
type Names[T any] struct {
	List       []T                // sorted; must not be changed
	Incomplete tracestore.Reasons // why names are missing
	Cut        bool               // a limit left out names
	Damage     tracestore.Reasons // the part of Incomplete that is not about a limit
}

// Services admits a query for service names, see Slot.Services.
func (b *Backend) Services(ctx context.Context, q tracestore.NameQuery) (Names[string], error) {
	return admitNames(b, ctx, OpGetServices, func(s *Slot) (Names[string], error) { return s.Services(q) })
}

// Operations admits a query for operations of a service, see Slot.Operations.
func (b *Backend) Operations(ctx context.Context, service, kind string, q tracestore.NameQuery) (Names[tracestore.Operation], error) {
	return admitNames(b, ctx, OpGetOperations, func(s *Slot) (Names[tracestore.Operation], error) { return s.Operations(service, kind, q) })
}

func admitNames[T any](b *Backend, ctx context.Context, op Operation, list func(*Slot) (Names[T], error)) (n Names[T], err error) {
	s, err := b.Admit(ctx, op)
	if err != nil {
		return n, err
	}
	defer s.Release()
	err = s.Measure(func() (_ int, err error) {
		n, err = list(s)
		return len(n.List), err
	})
	return n, err
}

// Services returns names of services, at most Limits.Names.
func (s *Slot) Services(q tracestore.NameQuery) (Names[string], error) {
	return listNames(s, OpGetServices, q, func(q tracestore.NameQuery) ([]string, bool, error) {
		return s.Store().Services(s.ctx, s.Tenant(), q)
	})
}

// Operations returns operations of a service, at most Limits.Names. kind limits them to one span
// kind unless it is "".
func (s *Slot) Operations(service, kind string, q tracestore.NameQuery) (Names[tracestore.Operation], error) {
	return listNames(s, OpGetOperations, q, func(q tracestore.NameQuery) ([]tracestore.Operation, bool, error) {
		return s.Store().Operations(s.ctx, s.Tenant(), service, kind, q)
	})
}

func listNames[T any](
	s *Slot, op Operation, q tracestore.NameQuery, list func(tracestore.NameQuery) ([]T, bool, error),
) (n Names[T], _ error) {
	most := s.Limits().Names
	asked := q.Limit > 0 && q.Limit <= most // the client has set a limit and expects a part
	if !asked {
		q.Limit = most
	}
	names, more, err := list(q)
	if n.Damage, err = tracestore.DamageOf(err); err != nil {
		return n, err
	}
	n.List, n.Cut, n.Incomplete = names, more, n.Damage
	if !more {
		return n, nil
	}
	cut := NamesLeftOut(len(names))
	if !asked {
		cut.Text += fmt.Sprintf(" (max_names is %d); list the others by prefix", most)
		s.backend.noteCut(op, s.Tenant(), len(names))
	}
	n.Incomplete.Add(cut)
	return n, nil
}

// AttributeKeys returns at most limit attribute keys with a prefix. If several are names of one
// attribute in searches, only the newest is listed. ok is false if the store does not list
// attributes. Callers pass the list to Listed.
func (s *Slot) AttributeKeys(prefix string, limit int) (n Names[string], ok bool, err error) {
	n, ok, err = s.attributes(limit, func(limit int) ([]string, error) {
		return s.Store().AttributeKeys(s.ctx, s.Tenant(), prefix, limit)
	})
	if s.Language().Names != nil {
		n.List = s.backend.opts.Names.WithoutOlder(n.List)
	}
	return n, ok, err
}

// AttributeValues is like AttributeKeys, for the values of an attribute.
func (s *Slot) AttributeValues(f tracestore.Field, prefix string, limit int) (n Names[string], ok bool, err error) {
	return s.attributes(limit, func(limit int) (all []string, err error) {
		var damage tracestore.Reasons
		for of := range f.EachName() {
			values, err := s.Store().AttributeValues(s.ctx, s.Tenant(), of.Key, prefix, limit)
			reasons, err := tracestore.DamageOf(err)
			if err != nil {
				return nil, err
			}
			damage.Add(reasons...)
			if all == nil {
				all = values
			} else if len(values) > 0 {
				all = slices.Compact(slices.Sorted(slices.Values(slices.Concat(all, values))))
			}
		}
		if !damage.Complete() {
			err = &tracestore.DamagedError{Reasons: damage}
		}
		return all[:min(len(all), limit)], err
	})
}

func (s *Slot) attributes(limit int, list func(limit int) ([]string, error)) (n Names[string], ok bool, err error) {
	names, err := list(limit + 1)
	if errors.Is(err, tracestore.ErrUnsupported) {
		return n, false, nil
	}
	if n.Damage, err = tracestore.DamageOf(err); err != nil {
		return n, true, err
	}
	n.Incomplete = n.Damage
	if n.Cut = len(names) > limit; n.Cut {
		names = names[:limit]
		n.Incomplete.Add(NamesLeftOut(limit))
	}
	n.List = names
	return n, true, nil
}

// NamesLeftOut is the reason of a list that ends after n names.
func NamesLeftOut(n int) tracestore.Reason {
	return tracestore.Reason{Kind: tracestore.ReasonLimit, Text: fmt.Sprintf("names after the first %d are left out", n)}
}

// noteCut counts a list that exceeds Limits.Names, and warns once per cutInterval.
func (b *Backend) noteCut(op Operation, tenant string, listed int) {
	b.metrics.cut.WithLabelValues(string(op)).Inc()
	now := b.opts.Now().UnixNano()
	last := b.cutWarned.Load()
	if last != 0 && now-last < cutInterval.Nanoseconds() || !b.cutWarned.CompareAndSwap(last, now) {
		return
	}
	b.opts.Logger.Warn("list of names exceeds max_names; clients see a part of it; check whether names contain ids",
		zap.String("list", string(op)), zap.String("tenant", tenant), zap.Int("listed", listed))
}

// MaxListedText is the maximum length in bytes of a name or value that is listed for users to
// choose from.
const MaxListedText = 1 << 10

// Listed reserves memory for texts that a store listed and removes texts longer than MaxListedText.
// It does not modify the slice, which the store may share.
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
