package server

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// gRPC keeps a response until its client has granted enough HTTP/2 flow control, even after the
// call has ended. A client that stops reading and answers pings would thus hold the memory of its
// responses forever. readWatch closes the connection of such a client: it follows the frames in
// both directions and knows when flow control has been exhausted for write_timeout.
type readWatch struct {
	net.Conn
	limit   time.Duration
	stalled func() // called once if the connection is closed because of the limit

	in, out frameScanner // used by the goroutine that reads or writes

	mu      sync.Mutex
	conn    flowWindow            // of all streams together
	streams map[uint32]flowWindow // open streams by id, at most maxStreams
	initial int64                 // window of new streams
	max     int                   // streams that are followed
	timer   *time.Timer           // nil if no window is exhausted
	closed  bool
}

// flowWindow is the number of bytes that may be sent.
type flowWindow struct {
	left  int64
	since time.Time // when it was exhausted; zero if it is not
}

// addBytes changes the window.
func (w flowWindow) addBytes(n int64, now time.Time) flowWindow {
	w.left += n
	switch {
	case w.left > 0:
		w.since = time.Time{}
	case w.since.IsZero():
		w.since = now
	}
	return w
}

const (
	initialWindow   = 65535 // RFC 9113, 6.9.2
	maxFramePayload = 1 << 10
)

// readWatchCreds wraps the connections of credentials in a readWatch, which sees the frames before
// encryption.
type readWatchCreds struct {
	credentials.TransportCredentials
	limit      time.Duration
	maxStreams int
	stalled    func()
}

// ServerHandshake implements credentials.TransportCredentials.
func (c readWatchCreds) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	w := &readWatch{Conn: conn, limit: c.limit, stalled: c.stalled, initial: initialWindow, max: c.maxStreams,
		conn: flowWindow{left: initialWindow}, streams: map[uint32]flowWindow{}}
	w.in.skip = len(http2.ClientPreface)
	return w, info, nil
}

// Clone implements credentials.TransportCredentials.
func (c readWatchCreds) Clone() credentials.TransportCredentials {
	c.TransportCredentials = c.TransportCredentials.Clone()
	return c
}

// Read implements net.Conn.
func (w *readWatch) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.mu.Lock()
		w.in.scan(p[:n], w.received)
		w.mu.Unlock()
	}
	return n, err
}

// Write implements net.Conn.
func (w *readWatch) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.out.scan(p, w.sent)
	w.mu.Unlock()
	return w.Conn.Write(p)
}

// Close implements net.Conn.
func (w *readWatch) Close() error {
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	return w.Conn.Close()
}

// received applies a frame of the client. The caller holds w.mu.
func (w *readWatch) received(f http2.FrameHeader, payload []byte) {
	switch {
	case f.Type == http2.FrameHeaders:
		if _, open := w.streams[f.StreamID]; !open && len(w.streams) < w.max {
			w.streams[f.StreamID] = flowWindow{left: w.initial}
		}
	case f.Type == http2.FrameRSTStream:
		delete(w.streams, f.StreamID)
	case f.Type == http2.FrameWindowUpdate && len(payload) == 4:
		w.grow(f.StreamID, int64(binary.BigEndian.Uint32(payload)&(1<<31-1)))
	case f.Type == http2.FrameSettings && !f.Flags.Has(http2.FlagSettingsAck):
		for ; len(payload) >= 6; payload = payload[6:] {
			if http2.SettingID(binary.BigEndian.Uint16(payload)) == http2.SettingInitialWindowSize {
				w.resize(int64(binary.BigEndian.Uint32(payload[2:])))
			}
		}
	}
}

// sent applies a frame of the server. The caller holds w.mu.
func (w *readWatch) sent(f http2.FrameHeader, _ []byte) {
	switch {
	case f.Type == http2.FrameData && f.Length > 0:
		w.grow(0, -int64(f.Length))
		w.grow(f.StreamID, -int64(f.Length))
	case f.Type == http2.FrameRSTStream, f.Type == http2.FrameHeaders && f.Flags.Has(http2.FlagHeadersEndStream):
		delete(w.streams, f.StreamID) // everything was sent
	}
}

// grow changes the window of a stream, or of the connection for id 0.
func (w *readWatch) grow(id uint32, n int64) {
	now := time.Now()
	if id == 0 {
		w.conn = w.conn.addBytes(n, now)
		w.watch(w.conn)
		return
	}
	if s, open := w.streams[id]; open {
		s = s.addBytes(n, now)
		w.streams[id] = s
		w.watch(s)
	}
}

// resize sets the initial window of streams, which also changes the windows of open streams.
func (w *readWatch) resize(initial int64) {
	delta := initial - w.initial
	w.initial = initial
	for id := range w.streams {
		w.grow(id, delta)
	}
}

// watch starts the timer if the window is exhausted.
func (w *readWatch) watch(f flowWindow) {
	if !f.since.IsZero() && w.timer == nil && !w.closed {
		w.timer = time.AfterFunc(w.limit, w.check)
	}
}

// check closes the connection if a window has been exhausted for the limit.
func (w *readWatch) check() {
	w.mu.Lock()
	first := w.conn.since
	for _, s := range w.streams {
		if first.IsZero() || !s.since.IsZero() && s.since.Before(first) {
			first = s.since
		}
	}
	w.timer = nil
	wait := w.limit - time.Since(first)
	stalled := !first.IsZero() && wait <= 0 && !w.closed
	if !first.IsZero() && wait > 0 && !w.closed {
		w.timer = time.AfterFunc(wait, w.check)
	}
	w.mu.Unlock()
	if stalled {
		w.stalled()
		w.Close() //nolint:errcheck // its client does not read
	}
}

// frameScanner finds HTTP/2 frames in a stream of bytes that arrive in pieces of any size.
type frameScanner struct {
	skip    int // bytes before the next frame header or payload
	header  []byte
	frame   http2.FrameHeader // with a payload that is being read
	payload []byte            // so far; nil between frames
	left    int               // bytes of the payload that are missing
}

const frameHeaderLen = 9

// scan calls found for each frame, with the payload of window updates and settings. It reports
// other frames when their header has arrived.
func (s *frameScanner) scan(p []byte, found func(f http2.FrameHeader, payload []byte)) {
	for len(p) > 0 {
		switch {
		case s.skip > 0:
			n := min(s.skip, len(p))
			s.skip, p = s.skip-n, p[n:]
		case s.left > 0:
			n := min(s.left, len(p))
			s.payload, s.left, p = append(s.payload, p[:n]...), s.left-n, p[n:]
			if s.left == 0 {
				found(s.frame, s.payload)
				s.payload = s.payload[:0]
			}
		default:
			n := min(frameHeaderLen-len(s.header), len(p))
			s.header, p = append(s.header, p[:n]...), p[n:]
			if len(s.header) == frameHeaderLen {
				s.beginFrames(found)
			}
		}
	}
}

// beginFrames starts the frame of a complete header.
func (s *frameScanner) beginFrames(found func(f http2.FrameHeader, payload []byte)) {
	h := s.header
	s.header = h[:0]
	s.frame = http2.FrameHeader{Length: uint32(h[0])<<16 | uint32(h[1])<<8 | uint32(h[2]), Type: http2.FrameType(h[3]),
		Flags: http2.Flags(h[4]), StreamID: binary.BigEndian.Uint32(h[5:]) & (1<<31 - 1)}
	control := s.frame.Type == http2.FrameWindowUpdate || s.frame.Type == http2.FrameSettings
	if control && s.frame.Length > 0 && s.frame.Length <= maxFramePayload {
		s.left = int(s.frame.Length)
		return
	}
	s.skip = int(s.frame.Length)
	found(s.frame, nil)
}
