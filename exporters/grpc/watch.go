package grpc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// probeTimeout is the maximum duration of a probe.
const probeTimeout = 5 * time.Second

// watcher reports whether the server of a connection responds. It probes the server when the
// connection or a call fails, and then regularly until a probe succeeds, so that the report ends
// without calls of users. While the server responds, there are no probes.
type watcher struct {
	conn     *client.GRPC
	server   string
	interval time.Duration // between failed probes
	report   func(error)   // called with the reason when the server stops responding, then with nil

	down     atomic.Bool   // the last probe failed
	requests chan struct{} // for probes; has a buffer of 1
	running  sync.WaitGroup
	cancel   context.CancelFunc
}

func newWatcher(conn *client.GRPC, server string, interval time.Duration, report func(error)) *watcher {
	return &watcher{conn: conn, server: server, interval: interval, report: report, requests: make(chan struct{}, 1)}
}

// start starts watching the connection, which must be started.
func (w *watcher) start() {
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	w.running.Go(func() { w.followConnection(ctx) })
	w.running.Go(func() { w.answerRequests(ctx) })
}

// stop ends the watch.
func (w *watcher) stop() {
	w.cancel()
	w.running.Wait()
}

// suspect requests a probe, because a call failed as if the server was unreachable.
func (w *watcher) suspect() {
	if !w.down.Load() {
		w.request()
	}
}

func (w *watcher) request() {
	select {
	case w.requests <- struct{}{}:
	default:
	}
}

// followConnection requests probes when the connection fails, and when it is restored.
func (w *watcher) followConnection(ctx context.Context) {
	for state := connectivity.Idle; ctx.Err() == nil; {
		state = w.conn.AwaitChange(ctx, state)
		if state == connectivity.TransientFailure || state == connectivity.Ready && w.down.Load() {
			w.request()
		}
	}
}

// answerRequests probes the server on request, and then until it responds.
func (w *watcher) answerRequests(ctx context.Context) {
	for {
		var retry <-chan time.Time
		if w.down.Load() {
			retry = time.After(w.interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.requests:
		case <-retry:
		}
		err := w.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if w.down.Swap(err != nil) || err != nil {
			w.report(err)
		}
	}
}

// probe returns the reason why the server does not respond. Every response is a success, even that
// the method is unknown or that a tenant is required. probe returns nil if ctx ends.
func (w *watcher) probe(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := storage_v2.NewCapabilitiesClient(originalNames{w.conn}).GetCapabilities(limited, &storage_v2.GetCapabilitiesRequest{},
		grpc.WaitForReady(false))
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		if ctx.Err() == nil {
			return fmt.Errorf("remote storage server %s is unreachable: %w", w.server, err)
		}
	default:
	}
	return nil
}
