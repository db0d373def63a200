package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// readPause is how long a listener waits after a read that failed, times the number of such reads in a row, up to maxReadPause.
const (
	readPause    = 10 * time.Millisecond
	maxReadPause = 500 * time.Millisecond
)

// UDP serves a protocol of datagrams, each of which is complete in itself and gets no answer. One goroutine for each socket reads; workers
// take what waits, all at once, and may be slow.
//
//	socket ─▶ buffer of the system ─▶ queue, in bytes ─▶ worker: handler
//
// In datagrams, received = handled + refused, by reason, as soon as nothing waits. What the system drops because its buffer is full was
// never received, and is counted apart.
type UDP struct {
	name    string
	config  UDPConfig
	set     pipeline.Settings
	handler func(ctx context.Context, d *Datagrams)
	metrics *udpMetrics
	lines   logLimit
	queue   *udpQueue
	sockets []*udpSocket

	ctx      context.Context // of handlers
	cutOff   context.CancelFunc
	stopping chan struct{}
	readers  sync.WaitGroup
	workers  sync.WaitGroup
}

var (
	_ pipeline.Starter    = (*UDP)(nil)
	_ pipeline.Stopper    = (*UDP)(nil)
	_ pipeline.MemoryUser = (*UDP)(nil)
)

// NewUDP makes a server that does not listen yet. name is the path of its block below the component: the metrics' label, and what errors call
// it. The handler is called by as many goroutines as there are workers; its context ends when Stop loses its patience.
func NewUDP(set pipeline.Settings, name string, cfg UDPConfig, handler func(ctx context.Context, d *Datagrams)) (*UDP, error) {
	set.Logger = set.Logger.With(zap.String("listener", name))
	s := &UDP{name: name, config: cfg, set: set, handler: handler, stopping: make(chan struct{})}
	s.queue = newUDPQueue(int(cfg.QueueSize), int(cfg.MaxPacketSize))
	s.lines.now = set.Env.Now
	var err error
	if s.metrics, err = newUDPMetrics(s); err != nil {
		return nil, err
	}
	s.ctx, s.cutOff = context.WithCancel(context.Background())
	return s, nil
}

// Start listens. The error names the key to change.
func (s *UDP) Start(ctx context.Context) error {
	conn, err := s.set.Env.ListenPacket(ctx, "udp", string(s.config.Endpoint))
	if err != nil {
		return listenError(s.name, s.config.Endpoint, err)
	}
	sockets := []*udpSocket{s.open(conn)}
	if twin := s.listenTwin(ctx, conn); twin != nil {
		sockets = append(sockets, s.open(twin))
	}
	s.metrics.setSockets(sockets)
	s.sockets = sockets
	for _, sock := range sockets {
		s.readers.Go(func() { s.receive(sock) })
	}
	for range s.config.Workers {
		s.workers.Go(s.work)
	}
	return nil
}

// listenTwin listens on ::1 when the endpoint is localhost and that was taken for 127.0.0.1: which of the two a client sends to is up to its
// language, and other than over TCP it does not learn that nobody listens.
func (s *UDP) listenTwin(ctx context.Context, first net.PacketConn) net.PacketConn {
	host, _, err := net.SplitHostPort(string(s.config.Endpoint))
	addr := addrPort(first.LocalAddr())
	if err != nil || host != "localhost" || addr.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		return nil
	}
	twin, err := s.set.Env.ListenPacket(ctx, "udp6", netip.AddrPortFrom(netip.IPv6Loopback(), addr.Port()).String())
	if err != nil {
		s.set.Logger.Info("localhost is 127.0.0.1 only", zap.Error(err))
		return nil
	}
	return twin
}

// open asks for a larger buffer, and says what the system made of it.
func (s *UDP) open(conn net.PacketConn) *udpSocket {
	fields := []zap.Field{zap.Stringer("address", conn.LocalAddr())}
	if udp, ok := conn.(*net.UDPConn); ok {
		fields = append(fields, s.enlarge(udp)...)
	}
	s.set.Logger.Info("listening", fields...)
	return newUDPSocket(conn, int(s.config.MaxPacketSize))
}

func (s *UDP) enlarge(conn *net.UDPConn) []zap.Field {
	asked := int(s.config.SocketBuffer)
	var fields []zap.Field
	if asked > 0 {
		fields = append(fields, zap.Int("socket-buffer-asked", asked))
		if err := conn.SetReadBuffer(asked); err != nil {
			return append(fields, zap.Error(err))
		}
	}
	granted, ok := grantedBuffer(conn)
	if !ok {
		return fields
	}
	fields = append(fields, zap.Int("socket-buffer-granted", granted))
	if granted < asked {
		fields = append(fields, zap.String("hint", "the system's limit is lower; on Linux it is net.core.rmem_max"))
	}
	return fields
}

// Addr returns the address that is listened on, that of IPv4 for localhost, or "" before Start.
func (s *UDP) Addr() string {
	if len(s.sockets) == 0 {
		return ""
	}
	return s.sockets[0].conn.LocalAddr().String()
}

// MaxMemory returns the bytes that buffers and the queue take at most, those included that workers have taken.
func (s *UDP) MaxMemory() int64 {
	const most = 2 // sockets
	held := s.config.Workers + slabsKept
	return int64(s.config.QueueSize) + int64(held*s.queue.slab) + most*readBatch*int64(s.config.MaxPacketSize+1)
}

// Stop reads what the system has already taken, and no more. Workers empty the queue; when ctx ends first, the rest is dropped, and the error
// says how much that is.
func (s *UDP) Stop(ctx context.Context) error {
	defer s.cutOff()
	close(s.stopping)
	for _, sock := range s.sockets {
		sock.wake()
	}
	s.readers.Wait()
	s.queue.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.workers.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	left := s.queue.abandon()
	s.metrics.refuse(ReasonStopping, left)
	s.cutOff()
	within(hardStopGrace, done)
	return fmt.Errorf("%s: %d datagrams were dropped that waited, and those cut off that were worked on: %w", s.name, left, ctx.Err())
}

// receive reads a socket until the server stops.
func (s *UDP) receive(sock *udpSocket) {
	defer sock.close()
	for failed := 0; ; {
		n, err := sock.read(0)
		if err == nil {
			failed = 0
			s.deliver(sock.packets[:n])
			continue
		}
		if s.isStopping() {
			sock.drain(s.deliver)
			return
		}
		if isClosed(err) {
			s.set.Report(fmt.Errorf("%s: reading from %s: %w", s.name, s.config.Endpoint, err))
			return
		}
		failed++
		s.metrics.readErrors.Add(1)
		s.lines.error(s.set.Logger, "cannot read from the socket; trying again", zap.Error(err))
		within(min(time.Duration(failed)*readPause, maxReadPause), s.stopping)
	}
}

func (s *UDP) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// deliver puts datagrams into the queue, and refuses those that cannot be right.
func (s *UDP) deliver(ps []packet) {
	s.metrics.received.Add(int64(len(ps)))
	s.metrics.lastSize.Store(int64(min(ps[len(ps)-1].n, int(s.config.MaxPacketSize))))
	for i := range ps {
		if p := &ps[i]; p.n == 0 || p.n > int(s.config.MaxPacketSize) {
			s.refuseUnread(p)
			p.n = 0
		}
	}
	full := s.queue.put(s, ps)
	s.metrics.processed.Add(int64(len(ps) - full))
	if full > 0 {
		s.metrics.refuse(ReasonQueueFull, full)
	}
}

func (s *UDP) refuseUnread(p *packet) {
	reason, err := ReasonEmpty, errEmptyDatagram
	if p.n > 0 {
		reason, err = ReasonTooLarge, error(&datagramTooLarge{int(s.config.MaxPacketSize)})
	}
	s.tell(min(p.n, int(s.config.MaxPacketSize)))
	s.refuse(p.from, reason, err)
}
