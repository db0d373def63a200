package server

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
)

const (
	auxPrefix    = "/grpc."           // services about the server itself
	healthPrefix = "/grpc.health.v1." // has to answer when the budget is used up, too
)

// call is what the server keeps of a call, and the call's context.
type call struct {
	context.Context
	cancel      context.CancelFunc
	server      *GRPC
	reservation *pipeline.Reservation
	free        bool        // takes nothing of the budget
	deadline    *time.Timer // ends the call unless its first message arrives
	slow        atomic.Bool // and that is what happened
	entered     atomic.Bool // the handler was called
	heard       bool        // the first message has arrived; known to who receives only
}

type callKey struct{}

// Value finds the call in its context.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// Err is what gRPC tells the client about a call that is cut off while it receives: of a slow one, that it took too long.
func (c *call) Err() error {
	err := c.Context.Err()
	if err != nil && c.slow.Load() {
		return context.DeadlineExceeded
	}
	return err
}

func (c *call) tooSlow() {
	c.slow.Store(true)
	c.cancel()
}

// admit is called for each call before anything of its message is read, on the goroutine that reads the connection: it must not wait.
func (g *GRPC) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	free := strings.HasPrefix(info.FullMethodName, healthPrefix)
	size := g.maxMsg
	if free {
		size = 0
	}
	res, err := g.set.Budget.Reserve(size)
	if err != nil {
		g.Refused(ReasonOverBudget)
		return ctx, pipeline.GRPCStatus(err).Err()
	}
	c := &call{server: g, reservation: res, free: free}
	c.Context, c.cancel = context.WithCancel(ctx)
	c.deadline = time.AfterFunc(g.timeout.Std(), c.tooSlow)
	leave := g.enter(c, strings.HasPrefix(info.FullMethodName, auxPrefix))
	context.AfterFunc(c.Context, func() {
		c.end()
		leave()
	})
	return c, nil
}

// enter counts the call, or has it ended with the other calls that watch the server. leave takes that back.
func (g *GRPC) enter(c *call, aux bool) (leave func()) {
	if aux {
		stop := context.AfterFunc(g.aux, c.cancel)
		return func() { stop() }
	}
	g.calls.begin()
	return g.calls.end
}

// end is called once the call's answer is known, or nobody waits for one.
func (c *call) end() {
	c.deadline.Stop()
	c.reservation.Release()
	if c.entered.CompareAndSwap(false, true) {
		c.server.Refused(ReasonProtocol)
	}
}

// enterHandler notes that the handler is called, which counts the call's refusals from now on.
func enterHandler(ctx context.Context) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.entered.Store(true)
	}
}

// received is told of every message that a call received, or could not: err is then what grpc says to it. It shrinks the call's
// reservation to the message.
func (g *GRPC) received(ctx context.Context, msg any, err error) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return err
	}
	if err != nil {
		c.notReceived(err)
		return err
	}
	c.heard = true
	c.deadline.Stop()
	if c.free {
		return nil
	}
	if err := c.reservation.Resize(messageSize(msg)); err != nil {
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
		if !c.heard {
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
