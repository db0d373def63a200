package multistore

import (
	"iter"
	"sync"
)

// stream is a sequence of values of one store that is read value by value.
type stream[V any] struct {
	store  string // name
	values iter.Seq2[V, error]
	next   func() (V, error, bool) // nil: not started
	stop   func()
	head   *V    // nil: not read yet, or the stream has ended
	ended  bool  // there are no more values
	err    error // why it ended; nil if it reached its end or was closed
}

// fill reads the next value, unless head has one.
func (s *stream[V]) fill() {
	if s.head != nil || s.ended {
		return
	}
	if s.next == nil {
		s.next, s.stop = iter.Pull2(s.values)
	}
	v, err, ok := s.next()
	if !ok || err != nil {
		s.err = err
		s.close()
		return
	}
	s.head = &v
}

// close ends the stream and drops its head.
func (s *stream[V]) close() {
	if s.stop != nil {
		s.stop()
	}
	s.head, s.ended = nil, true
}

// concurrently calls f with each item, and returns when all calls have returned.
func concurrently[T any](items []T, f func(T)) {
	if len(items) == 1 {
		f(items[0])
		return
	}
	var calls sync.WaitGroup
	for _, item := range items {
		calls.Go(func() { f(item) })
	}
	calls.Wait()
}
