package multistore

import "iter"

// stream is a sequence of values of one store that is read value by value.
type stream[V any] struct {
	call   *call
	values iter.Seq2[V, error]     // read with call.ctx
	next   func() (V, error, bool) // nil: not started
	stop   func()
	head   *V    // nil: not read yet, or the stream has ended
	sent   int64 // bytes of the current trace that were passed on
	ended  bool  // there are no more values
	err    error // why it ended; nil if it reached its end or was closed
}

// fill reads the next value, unless head has one.
func (s *stream[V]) fill() {
	if s.head != nil || s.ended {
		return
	}
	defer s.call.limitTime()()
	if s.next == nil {
		s.next, s.stop = iter.Pull2(s.values)
	}
	v, err, ok := s.next()
	if !ok || err != nil {
		s.err = s.call.failure(err)
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
