package grpc

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
)

// capabilities are what the other side can do.
type capabilities struct {
	version      string
	needsService bool // v2: it says that it finds nothing without the name of a service
	streaming    bool // v1: WriteSpanStream
	archive      bool // v1: traces can be archived and read back
}

// peer knows what the other side can do. It asks when it has to, and again after a reconnect: another process may be there. It is the stats
// handler of the connection.
type peer struct {
	conn     field
	protocol string
	archive  bool
	asking   chan struct{} // holds a token while somebody asks

	mu      sync.Mutex
	changes int           // connections made and ended so far
	known   *capabilities // nil: not asked since the last of them
}

var _ stats.Handler = (*peer)(nil)

func newPeer(c config) *peer {
	return &peer{protocol: c.Protocol, archive: c.Archive, asking: make(chan struct{}, 1)}
}

// capabilities asks, unless it knows. Errors are gRPC statuses, or those of ctx.
func (p *peer) capabilities(ctx context.Context) (*capabilities, error) {
	if c, _ := p.state(); c != nil {
		return c, nil
	}
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		c, before := p.state()
		if c != nil {
			return c, nil
		}
		c, err := p.ask(ctx)
		if err != nil {
			return nil, fmt.Errorf("asking what the remote store can do: %w", err)
		}
		if p.learn(c, before) {
			return c, nil
		}
	}
}

func (p *peer) state() (*capabilities, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.changes
}

// learn remembers an answer, unless connections have changed meanwhile: then nobody knows which process gave it.
func (p *peer) learn(c *capabilities, changes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes != changes {
		return false
	}
	p.known = c
	return true
}

func (p *peer) ask(ctx context.Context) (*capabilities, error) {
	if p.protocol == v1Name || p.archive {
		return p.askV1(ctx)
	}
	c, err := p.askV2(ctx)
	if status.Code(err) == codes.Unimplemented {
		return p.askV1(ctx)
	}
	return c, err
}

// askV2 asks for the capabilities of v2. Servers that are older than that question have v2 if they answer another one of it.
func (p *peer) askV2(ctx context.Context) (*capabilities, error) {
	resp, err := storage_v2.NewCapabilitiesClient(p.conn).GetCapabilities(ctx, &storage_v2.GetCapabilitiesRequest{})
	if err == nil {
		return &capabilities{version: v2Name, needsService: !resp.GetSearch().GetWithoutServiceName()}, nil
	}
	if status.Code(err) != codes.Unimplemented {
		return nil, err
	}
	if p.protocol == v2Name {
		return &capabilities{version: v2Name}, nil
	}
	if _, err := storage_v2.NewTraceReaderClient(p.conn).GetServices(ctx, &storage_v2.GetServicesRequest{}); err != nil {
		return nil, err
	}
	return &capabilities{version: v2Name}, nil
}

// askV1 asks for the capabilities of v1. A server that does not know the question has none.
func (p *peer) askV1(ctx context.Context) (*capabilities, error) {
	resp, err := storage_v1.NewPluginCapabilitiesClient(p.conn).Capabilities(ctx, &storage_v1.CapabilitiesRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return nil, err
	}
	return &capabilities{version: v1Name, streaming: resp.GetStreamingSpanWriter(),
		archive: resp.GetArchiveSpanReader() && resp.GetArchiveSpanWriter()}, nil
}

// HandleConn notes a connection that was made, or ended: after either another process may answer.
func (p *peer) HandleConn(context.Context, stats.ConnStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	p.known = nil
}

// TagConn returns ctx.
func (p *peer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// TagRPC returns ctx.
func (p *peer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (p *peer) HandleRPC(context.Context, stats.RPCStats) {}
