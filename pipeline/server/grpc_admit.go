package server

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
)

const (
	servicePrefix = "/grpc."           // health and reflection
	healthPrefix  = "/grpc.health.v1." // must answer even if the budget is exhausted
	healthCalls   = 16                 // concurrent health checks beyond the budget
	callCost      = 16 << 10           // estimated memory of a call without headers and message, in bytes
	headerCost    = 64                 // estimated memory of a header without its text, in bytes
)

// errArriving is the error of a call that is refused because of the limits in arrivals.
var errArriving = errors.New("too many calls have not sent their first message")

// call is the state of a call and its context.
type call struct {
	context.Context
	cancel      context.CancelFunc
	began       time.Time // zero unless the process is traced
	server      *GRPC
	refused     error  // set by admit or decide; the handler returns it
	login       *login // whose password must be compared before the handler runs; nil if none
	method      string
	reservation *pipeline.Reservation
	admitted    int64        // bytes reserved at the start
	cost        int64        // bytes of admitted that are not for the message
	conn        *peer.Peer   // counted in arrivals until the first message has arrived; nil if not counted
	detach      func() bool  // detaches a health or reflection call from serviceCtx; nil for other calls
	deadline    *time.Timer  // ends the call if its first message does not arrive
	timedOut    atomic.Bool  // deadline has fired or EndCall was called
	entered     atomic.Bool  // the handler was called, or the refusal was counted
	arrived     atomic.Bool  // the first message has arrived, or the call has ended without one
	holders     atomic.Int32 // the call's context and its running handler
}

type callKey struct{}

// Value implements context.Context. It also returns the call itself.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call of a handler's context. Every call has passed admit.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// Err implements context.Context. If the call has timed out, it returns context.DeadlineExceeded,
// which gRPC sends to the client.
func (c *call) Err() error {
	err := c.Context.Err()
	if err != nil && c.timedOut.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// EndCall ends the call whose handler has the context ctx or one derived from it. The handler no
// longer waits for its client. The client receives the data that gRPC has already buffered, then
// DeadlineExceeded.
func EndCall(ctx context.Context) { callOf(ctx).timeOut() }

func (c *call) timeOut() {
	c.timedOut.Store(true)
	c.cancel()
}

// admit is called for each call before its message is read. It runs on the goroutine that reads the
// connection and must not block. A refused call gets its error from its handler: if admit returned
// an error, gRPC would keep the context of the call, with all headers, until the deadline set by
// the client.
func (g *GRPC) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := &call{server: g, began: g.traceStart(), method: info.FullMethodName, admitted: g.maxMsg, cost: callCost + headersCost(info.Header)}
	c.holders.Store(1)
	ctx, reason := g.authorize(ctx, c, info)
	c.Context, c.cancel = context.WithCancel(ctx)
	if c.refused != nil && c.login == nil {
		g.acceptor.countRefused(reason)
		c.entered.Store(true) // already counted
	}
	c.deadline = time.AfterFunc(g.timeout.Std(), c.timeOut)
	if strings.HasPrefix(info.FullMethodName, servicePrefix) {
		c.detach = context.AfterFunc(g.serviceCtx, c.cancel)
	} else {
		g.active.beginCall()
	}
	context.AfterFunc(c.Context, c.leave)
	return c, nil
}

// authorize checks credentials and tenant, then reserves memory for the message. If the call is
// refused, it sets c.refused and returns the reason. If a password must be compared, it sets
// c.login, and decide does the rest. Health checks need no credentials, because orchestrators
// usually have none.
func (g *GRPC) authorize(ctx context.Context, c *call, info *tap.Info) (_ context.Context, reason string) {
	checked := ctx
	if !strings.HasPrefix(info.FullMethodName, healthPrefix) {
		var err error
		checked, c.login, err = g.acceptor.security.beginRequest(ctx, remoteAddress(ctx), info.Header.Get)
		if g.keepsHeaders {
			checked = withMetadata(checked, info.Header)
		}
		if err != nil {
			c.refused = pipeline.GRPCStatus(err).Err()
			return ctx, err.(*Denied).Reason
		}
		if c.login != nil {
			return checked, ""
		}
	}
	c.refused = c.reserve(ctx)
	return checked, ReasonOverBudget
}

// remoteAddress returns the client address of a call.
func remoteAddress(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

// decide compares the password of the call, on the goroutine of its handler, and does the rest of
// authorize. No memory is reserved before, because the client is unknown; until then gRPC holds at
// most the flow-control window of the message.
func (c *call) decide() {
	reason := ReasonOverBudget
	if err := c.login.wait(c); err != nil {
		c.refused, reason = pipeline.GRPCStatus(err).Err(), err.(*Denied).Reason
	} else {
		c.refused = c.reserve(c.Context)
	}
	if c.refused != nil {
		c.server.acceptor.countRefused(reason)
	}
}

// reserve reserves memory for a message of the maximum size, within the limits in arrivals.
func (c *call) reserve(ctx context.Context) error {
	conn, _ := peer.FromContext(ctx)
	err := errArriving
	if c.server.arrivals.beginArrival(conn) {
		if c.reservation, err = c.server.set.Budget.Reserve(c.admitted); err == nil {
			c.conn = conn
			return nil
		}
		c.server.arrivals.end(conn)
	}
	if strings.HasPrefix(c.method, healthPrefix) {
		c.reservation, err = c.server.healthBudget.Reserve(c.admitted)
	}
	if err != nil {
		return pipeline.GRPCStatus(pipeline.Overloaded(err, time.Second)).Err()
	}
	return nil
}

func headersCost(md metadata.MD) (n int64) {
	for k, vs := range md {
		for _, v := range vs {
			n += int64(len(k)+len(v)) + headerCost
		}
	}
	return n
}

// enter is called when the handler starts; the handler must return its error. leave is called when
// the handler returns and when the context ends. The last leave releases the resources of the call:
// a handler may use the message after its client has disconnected.
func (c *call) enter() error {
	for {
		n := c.holders.Load()
		if n == 0 {
			return status.FromContextError(c.Err()).Err()
		}
		if c.holders.CompareAndSwap(n, n+1) {
			break
		}
	}
	c.entered.Store(true)
	if c.login != nil {
		c.decide()
	}
	if c.refused != nil {
		c.leave()
	}
	return c.refused
}

func (c *call) leave() {
	if c.holders.Add(-1) > 0 {
		return
	}
	c.deadline.Stop()
	if !c.arrived.Swap(true) { // a handler may return while another of its goroutines receives
		c.endArrival()
	}
	if c.reservation != nil {
		c.reservation.Release()
	}
	if !c.entered.Load() {
		c.server.acceptor.countRefused(ReasonProtocol)
	}
	if c.detach != nil {
		c.detach()
		return
	}
	c.server.active.end()
}

// endArrival stops counting the call as waiting for its first message.
func (c *call) endArrival() {
	if c.conn != nil {
		c.server.arrivals.end(c.conn)
	}
}

// received is called after each attempt to receive a message, with its error. It shrinks the
// reservation of the call to the size of the message.
func (g *GRPC) received(ctx context.Context, msg any, err error) error {
	c := callOf(ctx)
	if err != nil {
		c.notReceived(err)
		return err
	}
	if !c.arrived.Swap(true) {
		c.deadline.Stop()
		c.endArrival()
	}
	if err := c.reservation.Resize(min(c.cost+messageSize(msg), c.admitted)); err != nil {
		g.acceptor.countRefused(ReasonOverBudget)
		return pipeline.GRPCStatus(err).Err()
	}
	return nil
}

func messageSize(msg any) int64 {
	switch m := msg.(type) {
	case *Raw:
		return int64(len(*m))
	case proto.Message:
		return int64(proto.Size(m))
	}
	return 0
}

// notReceived counts a refused message. A stream that is canceled after its first message is not
// counted.
func (c *call) notReceived(err error) {
	switch status.Code(err) {
	case codes.ResourceExhausted:
		c.server.acceptor.countRefused(ReasonTooLarge)
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		if !c.arrived.Load() {
			c.server.acceptor.countRefused(ReasonIncomplete)
		}
	default:
		c.server.acceptor.countRefused(ReasonUndecodable)
	}
}

// admittedStream adjusts the reservation of a stream to the size of each received message.
type admittedStream struct {
	grpc.ServerStream
	server *GRPC
	ctx    context.Context
}

// Context implements grpc.ServerStream.
func (s *admittedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream. io.EOF is not counted as a refusal.
func (s *admittedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == io.EOF {
		return err
	}
	return s.server.received(s.Context(), m, err)
}

// arrivals limits the calls that wait for their first message. Such a call reserves budget for a
// message of the maximum size but costs its client almost nothing, so a few silent calls could
// otherwise exhaust the budget. The calls of one connection may reserve at most half of the budget,
// all calls together three quarters.
type arrivals struct {
	maxPerConn, maxTotal int

	mu     sync.Mutex
	n      int
	byConn map[*peer.Peer]int
}

// newArrivals returns the limits for a maximum message size and a budget, both in bytes. They are
// at least 1.
func newArrivals(message, budget int64) *arrivals {
	a := &arrivals{maxPerConn: math.MaxInt, maxTotal: math.MaxInt, byConn: map[*peer.Peer]int{}}
	if budget > 0 {
		a.maxPerConn = int(max(1, budget/2/message))
		a.maxTotal = int(max(1, budget/4*3/message))
	}
	return a
}

// beginArrival reports whether another call of the connection may wait. If so, the caller must call
// end later. gRPC uses the same *peer.Peer for all calls of a connection.
func (a *arrivals) beginArrival(conn *peer.Peer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n >= a.maxTotal || a.byConn[conn] >= a.maxPerConn {
		return false
	}
	a.n++
	a.byConn[conn]++
	return true
}

func (a *arrivals) end(conn *peer.Peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n--
	if a.byConn[conn]--; a.byConn[conn] == 0 {
		delete(a.byConn, conn)
	}
}
