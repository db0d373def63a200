package loadbalancing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

const msgUnresolved = "cannot resolve backends; using the backends of the last response"

// resolver finds the addresses of the backends.
type resolver struct {
	set      pipeline.Settings
	static   []string // nil: DNS
	dns      dnsConfig
	max      int // backends
	backends *backends
	metrics  *metrics
	health   *health
	lines    *pipeline.RepeatLog

	cancel context.CancelFunc
	loop   sync.WaitGroup
}

func newResolver(set pipeline.Settings, c config, b *backends, m *metrics, h *health) *resolver {
	r := &resolver{set: set, max: c.MaxBackends, backends: b, metrics: m, health: h, lines: pipeline.NewRepeatLog(set)}
	r.dns, _ = c.Resolver.DNS.Get()
	if static, on := c.Resolver.Static.Get(); on {
		for _, hostname := range static.Hostnames {
			r.static = append(r.static, withPort(hostname))
		}
	}
	return r
}

// start resolves once. A DNS failure is reported and retried later.
func (r *resolver) start(ctx context.Context) error {
	if r.static != nil {
		_, err := r.backends.update(ctx, r.static)
		return err
	}
	r.resolve(ctx)
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.loop.Go(func() { r.repeat(ctx) })
	return nil
}

func (r *resolver) stop() {
	if r.cancel != nil {
		r.cancel()
	}
	r.loop.Wait()
	r.lines.Close()
}

func (r *resolver) repeat(ctx context.Context) {
	t := time.NewTicker(r.dns.Interval.Std())
	defer t.Stop()
	for {
		select {
		case <-t.C:
			r.resolve(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// resolve resolves the DNS name and updates the backends. If it fails, the backends stay.
func (r *resolver) resolve(ctx context.Context) {
	addresses, err := r.lookup(ctx)
	changed := false
	if err == nil {
		changed, err = r.backends.update(ctx, addresses)
	}
	if ctx.Err() != nil {
		return // stopping
	}
	r.health.setResolution(err)
	if err == nil {
		r.lines.End(msgUnresolved)
	}
	switch {
	case err != nil:
		r.metrics.resolutions.WithLabelValues("failed").Inc()
		r.lines.Warn(msgUnresolved, zap.Error(err))
	case changed:
		r.metrics.resolutions.WithLabelValues("changed").Inc()
		r.set.Logger.Info("backends changed", zap.Strings("backends", addresses))
	default:
		r.metrics.resolutions.WithLabelValues("unchanged").Inc()
	}
}

// lookup returns the addresses of the DNS name, with ports, in any order.
func (r *resolver) lookup(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.dns.Timeout.Std())
	defer cancel()
	hosts, err := r.set.Env.LookupHost(ctx, r.dns.Hostname)
	switch {
	case err != nil:
	case len(hosts) == 0:
		err = errors.New("response has no addresses")
	case len(hosts) > r.max:
		err = fmt.Errorf("response has %d addresses; max_backends is %d", len(hosts), r.max)
	}
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", r.dns.Hostname, err)
	}
	addresses := make([]string, len(hosts))
	for i, h := range hosts {
		addresses[i] = net.JoinHostPort(h, strconv.Itoa(r.dns.Port))
	}
	return addresses, nil
}
