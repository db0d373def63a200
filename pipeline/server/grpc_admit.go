package server

import (
	"context"
	"errors"
	"io"
	"strings"
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
	auxPrefix    = "/grpc."           // services about the server itself
	healthPrefix = "/grpc.health.v1." // has to answer when the budget is used up, too
	healthCalls  = 16                 // that many may arrive at once beyond the budget
	callCost     = 16 << 10           // memory of a call besides its headers and its message, in bytes
	headerCost   = 64                 // of one header besides its text
)

// errArriving refuses a call when too many others have not sent their message yet.
var errArriving = errors.New("too many calls are waiting for their message")

// call is what the server keeps of a call, and the call's context.
type call struct {
	context.Context
	cancel      context.CancelFunc
	server      *GRPC
	refused     error // by admit; the handler answers with it
	reservation *pipeline.Reservation
	admitted    int64       // bytes reserved at the start
	cost        int64       // bytes of them that are not for the message
	conn        *peer.Peer  // whose share the call takes until its message has arrived; nil: nobody's
	aux         func() bool // of calls that watch the server: unties them from it
	deadline    *time.Timer // ends the call unless its first message arrives
	slow        atomic.Bool // and that is what happened
	entered     atomic.Bool // the handler was called
	heard       atomic.Bool // the first message has arrived, or the call has ended without
	holders     atomic.Int32
}

type callKey struct{}

// Value finds the call in its context.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call of a handler's context: all calls are admitted.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// Err is what gRPC tells the client about a call that is cut off while it receives: of a slow one, that it took too long.
func (c *call) Err() error {
	err := c.Context.Err()
	if err != nil && c.slow.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// EndCall ends the call whose handler has the context ctx, or one made of it: the handler waits no more for its client, which is told, behind
// what gRPC holds for it already, that the call took too long.
func EndCall(ctx context.Context) { callOf(ctx).tooSlow() }

func (c *call) tooSlow() {
	c.slow.Store(true)
	c.cancel()
}

// admit is called for each call before anything of its message is read, on the goroutine that reads the connection: it must not wait. A
// call that is refused gets its answer from its handler: for an error of this function gRPC would keep the call's context, with all
// headers, until the deadline that the client chose.
func (g *GRPC) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := &call{server: g, admitted: g.maxMsg, cost: callCost + headersCost(info.Header)}
	c.holders.Store(1)
	ctx, reason := g.letIn(ctx, c, info)
	c.Context, c.cancel = context.WithCancel(ctx)
	if c.refused != nil {
		g.Refused(reason)
		c.entered.Store(true) // counted
	}
	c.deadline = time.AfterFunc(g.timeout.Std(), c.tooSlow)
	if strings.HasPrefix(info.FullMethodName, auxPrefix) {
		c.aux = context.AfterFunc(g.aux, c.cancel)
	} else {
		g.calls.begin()
	}
	context.AfterFunc(c.Context, c.leave)
	return c, nil
}

// letIn checks who the client is, and then that there is room for its message. What it is refused for, if it is, stands in c.refused, and is
// counted as reason. Health checks come from machinery that has no credentials.
func (g *GRPC) letIn(ctx context.Context, c *call, info *tap.Info) (_ context.Context, reason string) {
	checked := ctx
	if !strings.HasPrefix(info.FullMethodName, healthPrefix) {
		var err error
		if checked, err = g.security.check(ctx, info.Header.Get); err != nil {
			c.refused = pipeline.GRPCStatus(err).Err()
			return ctx, err.(*Denied).Reason
		}
	}
	c.refused = c.reserve(ctx, info.FullMethodName)
	return checked, ReasonOverBudget
}

// reserve takes what the greatest message needs of the budget and of the connection's share of it.
func (c *call) reserve(ctx context.Context, method string) error {
	conn, _ := peer.FromContext(ctx)
	err := errArriving
	if c.server.arrivals.begin(conn) {
		if c.reservation, err = c.server.set.Budget.Reserve(c.admitted); err == nil {
			c.conn = conn
			return nil
		}
		c.server.arrivals.end(conn)
	}
	if strings.HasPrefix(method, healthPrefix) {
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

// enter is called at the start of the handler, and leave at its end and at that of the context. The last leave ends the call: a handler may
// go on with the message after its client is gone. The error is the handler's answer.
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
	if !c.heard.Swap(true) { // a handler may leave while another goroutine of it receives
		c.arrived()
	}
	if c.reservation != nil {
		c.reservation.Release()
	}
	if !c.entered.Load() {
		c.server.Refused(ReasonProtocol)
	}
	if c.aux != nil {
		c.aux()
		return
	}
	c.server.calls.end()
}

// arrived gives the connection's share back.
func (c *call) arrived() {
	if c.conn != nil {
		c.server.arrivals.end(c.conn)
	}
}

// received is told of every message that a call received, or could not: err is then what grpc says to it. It shrinks the call's
// reservation to the message, and never takes more than was admitted.
func (g *GRPC) received(ctx context.Context, msg any, err error) error {
	c := callOf(ctx)
	if err != nil {
		c.notReceived(err)
		return err
	}
	if !c.heard.Swap(true) {
		c.deadline.Stop()
		c.arrived()
	}
	if err := c.reservation.Resize(min(c.cost+messageSize(msg), c.admitted)); err != nil {
		g.Refused(ReasonOverBudget)
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

// notReceived counts a refused message. That a stream which was heard of ends without a word is nothing unusual.
func (c *call) notReceived(err error) {
	switch status.Code(err) {
	case codes.ResourceExhausted:
		c.server.Refused(ReasonTooLarge)
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		if !c.heard.Load() {
			c.server.Refused(ReasonIncomplete)
		}
	default:
		c.server.Refused(ReasonUndecodable)
	}
}

// admittedStream notes the messages of a stream.
type admittedStream struct {
	grpc.ServerStream
	server *GRPC
}

// RecvMsg receives a message and holds its size. The end of the client's messages is no refusal.
func (s *admittedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == io.EOF {
		return err
	}
	return s.server.received(s.Context(), m, err)
}
