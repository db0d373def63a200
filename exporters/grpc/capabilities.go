package grpc

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// capabilities describes what a server supports.
type capabilities struct {
	version      string
	needsService bool // v2: it cannot search without a service name
	streaming    bool // v1: WriteSpanStream
	archive      bool // v1: it has an archive for writing and reading
	// store holds the names of the optional interfaces that this program's store service supports.
	// It is nil if the server is another program, or if the configuration excludes the store
	// service.
	store map[string]bool
}

// capabilityCache holds the capabilities of the server. It queries them when they are needed and
// after a reconnect, because the server may then be another process. It is the stats handler of the
// connection.
type capabilityCache struct {
	conn     originalNames
	protocol string
	archive  bool
	querying chan struct{} // holds a token while a goroutine queries the server

	mu      sync.Mutex
	changes int           // number of connections opened and closed
	known   *capabilities // nil if unknown since the last change
}

var _ stats.Handler = (*capabilityCache)(nil)

func newCapabilityCache(c config) *capabilityCache {
	return &capabilityCache{protocol: c.Protocol, archive: c.Archive, querying: make(chan struct{}, 1)}
}

// capabilities returns the capabilities of the server, and queries them if they are unknown. Errors
// are gRPC statuses or the error of ctx.
func (p *capabilityCache) capabilities(ctx context.Context) (*capabilities, error) {
	if c, _ := p.state(); c != nil {
		return c, nil
	}
	select {
	case p.querying <- struct{}{}:
		defer func() { <-p.querying }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		c, before := p.state()
		if c != nil {
			return c, nil
		}
		c, err := p.query(ctx)
		if err != nil {
			return nil, fmt.Errorf("querying the capabilities of the remote storage server: %w", err)
		}
		if p.set(c, before) {
			return c, nil
		}
	}
}

func (p *capabilityCache) state() (*capabilities, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.changes
}

// set stores capabilities, unless connections have changed meanwhile: they may belong to another
// process.
func (p *capabilityCache) set(c *capabilities, changes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes != changes {
		return false
	}
	p.known = c
	return true
}

func (p *capabilityCache) query(ctx context.Context) (*capabilities, error) {
	if p.protocol == v1Name || p.archive {
		return p.queryV1(ctx)
	}
	if p.protocol == auto {
		if c, err := p.queryStore(ctx); c != nil || err != nil {
			return c, err
		}
	}
	c, err := p.queryV2(ctx)
	if status.Code(err) == codes.Unimplemented {
		return p.queryV1(ctx)
	}
	return c, err
}

// queryStore queries the capabilities of this program's store service. It returns nil if the server
// does not have it. Spans are written as with v2.
func (p *capabilityCache) queryStore(ctx context.Context) (*capabilities, error) {
	resp, err := read[storewire.Capabilities](ctx, p.conn.conn, "Capabilities", &storewire.Hello{Version: storewire.Version})
	if tracestore.IsOutOfMemory(err) {
		return nil, err // of this process
	}
	switch status.Code(err) {
	case codes.OK:
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted:
		return nil, err // no response, or the server is overloaded
	default: // proxies may respond to unknown methods with codes other than Unimplemented
		return nil, nil //nolint:nilnil // there is no such service
	}
	if resp.Version != storewire.Version {
		return nil, nil //nolint:nilnil // not for us
	}
	c := &capabilities{version: v2Name, store: make(map[string]bool)}
	for _, one := range resp.Interfaces {
		c.store[one] = true
	}
	return c, nil
}

// queryV2 queries the capabilities of v2. An older server without this method supports v2 if it
// responds to another method of v2.
func (p *capabilityCache) queryV2(ctx context.Context) (*capabilities, error) {
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

// queryV1 queries the capabilities of v1. A server without this method has none.
func (p *capabilityCache) queryV1(ctx context.Context) (*capabilities, error) {
	resp, err := storage_v1.NewPluginCapabilitiesClient(p.conn).Capabilities(ctx, &storage_v1.CapabilitiesRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return nil, err
	}
	return &capabilities{version: v1Name, streaming: resp.GetStreamingSpanWriter(),
		archive: resp.GetArchiveSpanReader() && resp.GetArchiveSpanWriter()}, nil
}

// HandleConn discards the capabilities when a connection is opened or closed, because the server
// may then be another process.
func (p *capabilityCache) HandleConn(context.Context, stats.ConnStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	p.known = nil
}

// TagConn returns ctx.
func (p *capabilityCache) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// TagRPC returns ctx.
func (p *capabilityCache) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return ctx
}

// HandleRPC does nothing.
func (p *capabilityCache) HandleRPC(context.Context, stats.RPCStats) {}
