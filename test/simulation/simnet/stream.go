package simnet

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

const (
	window  = 64 << 10 // maximum number of bytes in transit in one direction; writes wait when it is full
	segment = 4 << 10  // maximum number of bytes that arrive together
)

// stream is one direction of a connection. Its state is guarded by the network's lock.
type stream struct {
	net  *Network
	link *link
	rng  *rand.Rand

	way     []parcel // in transit, in the order of arrival
	size    int      // bytes in way
	sent    time.Time
	err     error // the connection was reset
	fin     bool  // nothing more will be written
	ignored bool  // the reading end is closed
	changed chan struct{}
}

// parcel is a unit of transmission: bytes, the end of the stream, or a reset.
type parcel struct {
	at    time.Time
	bytes []byte
	end   bool
	reset bool
}

func newStream(n *Network, l *link, rng *rand.Rand) *stream {
	return &stream{net: n, link: l, rng: rng, changed: make(chan struct{})}
}

func (s *stream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// write sends as much of p as the window and the maximum segment size allow, and returns the number
// of bytes.
func (s *stream) write(p []byte) (int, error) {
	switch {
	case s.err != nil:
		return 0, s.err
	case s.fin:
		return 0, syscall.EPIPE
	case s.ignored && !s.link.Down:
		return 0, syscall.ECONNRESET
	}
	n := min(len(p), window-s.size, segment)
	if n <= 0 {
		return 0, nil
	}
	reset := s.link.cutAfter >= 0 && s.link.cutAfter <= n
	switch {
	case reset:
		n, s.link.cutAfter = s.link.cutAfter, -1
	case s.link.cutAfter >= 0:
		s.link.cutAfter -= n
	}
	s.send(parcel{bytes: slices.Clone(p[:n])})
	if reset {
		s.send(parcel{reset: true})
		return max(n, 1), nil // bytes after the cut are lost
	}
	return n, nil
}

// send sends a parcel after all earlier ones, with the rate and delay of the link.
func (s *stream) send(p parcel) {
	now := time.Now()
	if s.sent.Before(now) {
		s.sent = now
	}
	if s.link.Rate > 0 {
		s.sent = s.sent.Add(time.Duration(len(p.bytes)) * time.Second / time.Duration(s.link.Rate))
	}
	p.at = s.sent.Add(s.link.Delay)
	if s.link.Jitter > 0 {
		p.at = p.at.Add(time.Duration(s.rng.Int64N(int64(s.link.Jitter))))
	}
	if last := len(s.way) - 1; last >= 0 && p.at.Before(s.way[last].at) {
		p.at = s.way[last].at
	}
	s.net.note(len(p.bytes), p.at)
	s.way = append(s.way, p)
	s.size += len(p.bytes)
	s.wake()
}

// first returns the first parcel that has arrived, or the time at which it will arrive. A zero time
// means unknown.
func (s *stream) first() (p *parcel, at time.Time) {
	switch {
	case len(s.way) == 0, s.link.Down:
		return nil, time.Time{}
	case past(s.way[0].at):
		return &s.way[0], time.Time{}
	}
	return nil, s.way[0].at
}

// read consumes up to len(p) bytes of the first parcel.
func (s *stream) read(from *parcel, p []byte) int {
	n := copy(p, from.bytes)
	from.bytes = from.bytes[n:]
	if len(from.bytes) == 0 {
		s.way = s.way[1:]
	}
	s.size -= n
	s.wake()
	return n
}

// finish ends the stream after everything that was written.
func (s *stream) finish() {
	if !s.fin && s.err == nil {
		s.send(parcel{end: true})
		s.fin = true
	}
}

// ignore closes the reading end and discards what is in transit.
func (s *stream) ignore() {
	s.ignored, s.way, s.size = true, nil, 0
	s.wake()
}

func (s *stream) fail(err error) {
	s.err, s.way, s.size = err, nil, 0
	s.wake()
}
