package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// Reasons of refused datagrams, in addition to those of package server.
const (
	ReasonQueueFull = "queue_full" // all workers are busy and the queue is full
	ReasonEmpty     = "empty"      // a datagram without content
	ReasonPanic     = "panic"      // the handler panicked, which is a bug
)

// After n consecutive failed reads, the server waits n*readPause, but at most maxReadPause.
const (
	readPause    = 10 * time.Millisecond
	maxReadPause = 500 * time.Millisecond
)

// Server receives datagrams and passes them to a handler. Datagrams are independent of each other
// and get no response. One goroutine per socket reads; a worker takes all waiting datagrams
// together and may be slow.
//
//	socket ─▶ receive buffer of the operating system ─▶ queue, limited in bytes ─▶ worker: handler
//
// When no datagrams are waiting, received = handled + refused. Datagrams that the operating system
// drops because its receive buffer is full are not received; they are counted separately.
type Server struct {
	name    string
	config  Config
	set     pipeline.Settings
	handler func(ctx context.Context, d *Datagrams)
	metrics *metrics
	lines   logLimit
	queue   *queue
	sockets []*socket

	ctx      context.Context // of handlers
	cancel   context.CancelFunc
	stopping chan struct{}
	stopped  sync.Once // stopReading was called
	readers  sync.WaitGroup
	workers  sync.WaitGroup
}

var (
	_ pipeline.Starter     = (*Server)(nil)
	_ pipeline.Stopper     = (*Server)(nil)
	_ pipeline.Replaceable = (*Server)(nil)
	_ pipeline.MemoryUser  = (*Server)(nil)
)

// NewServer returns a server that listens after Start. name is the path of its block below the
// component; it is the label listener of the metrics and a prefix of errors. Each worker calls the
// handler from its own goroutine. The context of the handler is canceled when the context of Stop
// ends.
func NewServer(set pipeline.Settings, name string, cfg Config, handler func(ctx context.Context, d *Datagrams)) (*Server, error) {
	set.Logger = set.Logger.With(zap.String("listener", name))
	s := &Server{name: name, config: cfg, set: set, handler: handler, stopping: make(chan struct{})}
	s.queue = newQueue(int(cfg.QueueSize), int(cfg.MaxPacketSize))
	s.lines.now = set.Env.Now
	var err error
	if s.metrics, err = newMetrics(s); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Start opens the sockets. The error names the configuration key to change.
func (s *Server) Start(ctx context.Context) error {
	conn, err := s.set.Env.ListenPacket(ctx, "udp", string(s.config.Endpoint))
	if err != nil {
		return listen.Error(s.name, s.config.Endpoint, err)
	}
	sockets := []*socket{s.open(conn)}
	if ipv6 := s.listenIPv6Loopback(ctx, conn); ipv6 != nil {
		sockets = append(sockets, s.open(ipv6))
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

// listenIPv6Loopback additionally listens on ::1 if the endpoint is localhost and the first socket
// is on 127.0.0.1. A client may use either address for localhost and, unlike over TCP, gets no
// error if it chooses the wrong one.
func (s *Server) listenIPv6Loopback(ctx context.Context, first net.PacketConn) net.PacketConn {
	host, _, err := net.SplitHostPort(string(s.config.Endpoint))
	addr := addrPort(first.LocalAddr())
	if err != nil || host != "localhost" || addr.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		return nil
	}
	conn, err := s.set.Env.ListenPacket(ctx, "udp6", netip.AddrPortFrom(netip.IPv6Loopback(), addr.Port()).String())
	if err != nil {
		s.set.Logger.Info("cannot listen on ::1; localhost serves only 127.0.0.1", zap.Error(err))
		return nil
	}
	return conn
}

// open requests a larger receive buffer and logs the granted size.
func (s *Server) open(conn net.PacketConn) *socket {
	fields := []zap.Field{zap.Stringer("address", conn.LocalAddr())}
	if udp, ok := conn.(*net.UDPConn); ok {
		fields = append(fields, s.setBuffer(udp)...)
	}
	s.set.Logger.Info("listening", fields...)
	return newSocket(conn, int(s.config.MaxPacketSize))
}

// setBuffer requests the configured receive buffer. It returns fields that describe the result.
func (s *Server) setBuffer(conn *net.UDPConn) []zap.Field {
	requested := int(s.config.SocketBuffer)
	var fields []zap.Field
	if requested > 0 {
		fields = append(fields, zap.Int("socket-buffer-requested", requested))
		if err := conn.SetReadBuffer(requested); err != nil {
			return append(fields, zap.Error(err))
		}
	}
	granted, ok := grantedBuffer(conn)
	if !ok {
		return fields
	}
	fields = append(fields, zap.Int("socket-buffer-granted", granted))
	if granted < requested {
		fields = append(fields, zap.String("hint", "raise the limit of the operating system; on Linux it is net.core.rmem_max"))
	}
	return fields
}

// Addr returns the address of the listener, or "" before Start. For localhost it is the IPv4
// address.
func (s *Server) Addr() string {
	if len(s.sockets) == 0 {
		return ""
	}
	return s.sockets[0].conn.LocalAddr().String()
}

// transport is the value of status.Receiver.Transport.
const transport = "udp"

// Transport returns `udp`.
func (s *Server) Transport() string { return transport }

// Logger returns the logger of the component.
func (s *Server) Logger() *zap.Logger { return s.set.Logger }

// MaxMemory returns the maximum memory of buffers and queue in bytes, including the slabs that
// workers hold.
func (s *Server) MaxMemory() int64 {
	const maxSockets = 2
	slabs := s.config.Workers + maxFreeSlabs
	return int64(s.config.QueueSize) + int64(slabs*s.queue.slabSize) + maxSockets*readBatch*int64(s.config.MaxPacketSize+1)
}

// HandOver ends reading; the replacement reads the same sockets.
func (s *Server) HandOver(context.Context) { s.stopReading() }

// stopReading reads the datagrams that the operating system has already received, and closes the
// sockets.
func (s *Server) stopReading() {
	s.stopped.Do(func() {
		close(s.stopping)
		for _, sock := range s.sockets {
			sock.wake()
		}
	})
	s.readers.Wait()
}

// Stop reads the datagrams that the operating system has already received, then waits until the
// workers have emptied the queue. If ctx ends first, it drops the remaining datagrams and returns
// an error with their number.
func (s *Server) Stop(ctx context.Context) error {
	defer s.cancel()
	s.stopReading()
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
	dropped := s.queue.discard()
	s.metrics.refuse(server.ReasonStopping, dropped)
	s.cancel()
	listen.Wait(listen.StopGrace, done)
	return fmt.Errorf("%s: %d datagrams dropped from the queue, active handlers canceled: %w", s.name, dropped, ctx.Err())
}

// receive reads from a socket until the server stops.
func (s *Server) receive(sock *socket) {
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
		s.lines.error(s.set.Logger, "cannot read from socket; will retry", zap.Error(err))
		listen.Wait(min(time.Duration(failed)*readPause, maxReadPause), s.stopping)
	}
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// deliver puts datagrams into the queue. It refuses datagrams that are empty or too long.
func (s *Server) deliver(ps []packet) {
	s.metrics.received.Add(int64(len(ps)))
	s.metrics.lastSize.Store(int64(min(ps[len(ps)-1].n, int(s.config.MaxPacketSize))))
	for i := range ps {
		if p := &ps[i]; p.n == 0 || p.n > int(s.config.MaxPacketSize) {
			s.refuseInvalid(p)
			p.n = 0
		}
	}
	dropped := s.queue.put(s, ps)
	s.metrics.processed.Add(int64(len(ps) - dropped))
	if dropped > 0 {
		s.metrics.refuse(ReasonQueueFull, dropped)
	}
}

func (s *Server) refuseInvalid(p *packet) {
	reason, err := ReasonEmpty, errEmptyDatagram
	if p.n > 0 {
		reason, err = server.ReasonTooLarge, error(&datagramTooLarge{int(s.config.MaxPacketSize)})
	}
	s.logReceived(min(p.n, int(s.config.MaxPacketSize)))
	s.refuse(p.from, reason, err)
}
