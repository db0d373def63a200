package grpc

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tracing-backend/tracing/internal/multistore"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var (
	_ pipeline.Limited = (*config)(nil)
	_ client.Connector = (*config)(nil)
)

// connection returns the configuration of the connection to a server.
func (c *config) connection(endpoint string) client.GRPCConfig {
	return client.GRPCConfig{Endpoint: endpoint, GRPCSettings: c.GRPCSettings}
}

// Connections returns the connections to the servers that are read.
func (c *config) Connections() (all []client.GRPCConfig) {
	for _, endpoint := range c.Endpoints {
		all = append(all, c.connection(endpoint))
	}
	if c.Endpoint != "" {
		all = append(all, c.connection(c.Endpoint))
	}
	return all
}

func (c *config) validateEndpoints() (errs []error) {
	if len(c.Endpoints) == 0 {
		connection := c.connection(c.Endpoint)
		return []error{connection.Validate()}
	}
	if c.Endpoint != "" {
		errs = append(errs, pipeline.BadKey("endpoints", `cannot be combined with endpoint; delete one of them, or set endpoint: ""`))
	}
	if _, on := c.Writer.Get(); on {
		errs = append(errs, pipeline.BadKey("writer", "cannot be combined with endpoints: several stores are only read"))
	}
	if c.Archive {
		errs = append(errs, pipeline.BadKey("archive", "cannot be combined with endpoints; use another exporter for the archive"))
	}
	for i, endpoint := range c.Endpoints {
		key := fmt.Sprintf("endpoints::%d", i)
		connection := c.connection(endpoint)
		switch err := connection.Validate(); {
		case err != nil: // first: other errors show the address, which must not contain a password
			errs = append(errs, pipeline.BadKey(key, "%v", err))
		case strings.Contains(endpoint, ","):
			errs = append(errs, pipeline.BadKey(key, "%q has several addresses; write each store as one element of the list", endpoint))
		case slices.Index(c.Endpoints, endpoint) < i:
			errs = append(errs, pipeline.BadKey(key, "duplicate address %q", endpoint))
		}
	}
	return errs
}

// Lacks implements pipeline.Limited. Several stores cannot be written to, neither by pipelines nor
// as an archive.
func (c *config) Lacks(want reflect.Type) error {
	if want == reflect.TypeFor[pipeline.Consumer]() && len(c.Endpoints) > 0 {
		return errReadOnly
	}
	archive := want.Implements(reflect.TypeFor[pipeline.Consumer]()) && !want.Implements(reflect.TypeFor[tracestore.Catalog]())
	if archive && len(c.Endpoints) > 0 {
		return errors.New("exporter with endpoints is read-only; use an exporter with a single endpoint")
	}
	return nil
}

// component is the exporter: one server, or several servers whose stores are read as one.
type component struct{ remote }

// remote is the interface of both. Optional interfaces are available with tracestore.As.
type remote interface {
	pipeline.Starter
	pipeline.Stopper
	pipeline.DurabilityReporter
	pipeline.Consumer
	tracestore.Reader
	tracestore.Catalog
	tracestore.Provider
}

func newComponent(set pipeline.Settings, c config) (*component, error) {
	if len(c.Endpoints) == 0 {
		e, err := newExporter(set, c)
		return &component{e}, err
	}
	s, err := newServers(set, c)
	return &component{s}, err
}

// servers are several servers with different stores.
type servers struct {
	*multistore.Store
	all []*exporter
}

func newServers(set pipeline.Settings, c config) (*servers, error) {
	s := &servers{}
	var named []multistore.Named
	reports := newServerReports(set.Report, len(c.Endpoints))
	for i, endpoint := range c.Endpoints {
		own, one := set, c
		own.Report = func(err error) { reports.report(i, err) }
		one.Endpoint, one.Endpoints = endpoint, nil
		e, err := newExporter(own, one)
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, e)
		named = append(named, multistore.Named{Name: endpoint, Store: e})
	}
	s.Store = multistore.New(named...)
	return s, nil
}

// Start starts to connect.
func (s *servers) Start(ctx context.Context) error {
	for i, e := range s.all {
		if err := e.Start(ctx); err != nil {
			for _, started := range s.all[:i] {
				err = errors.Join(err, started.Stop(ctx))
			}
			return err
		}
	}
	return nil
}

// Stop closes the connections.
func (s *servers) Stop(ctx context.Context) error {
	var errs []error
	for _, e := range s.all {
		errs = append(errs, e.Stop(ctx))
	}
	return errors.Join(errs...)
}

// Durability reports that spans are sent to servers.
func (s *servers) Durability() pipeline.Durability { return pipeline.DurabilitySent }

var errReadOnly = errors.New("several stores (endpoints) are only read; write spans with the load_balancing exporter, which decides " +
	"in which store a trace is")

// Consume refuses all spans.
func (s *servers) Consume(context.Context, *otlpdata.Batch) error {
	return pipeline.Permanent(errReadOnly)
}

// serverReports joins the reports of several servers. The process is not ready only if all of them
// are down.
type serverReports struct {
	to func(error)

	mu    sync.Mutex // held while reporting, to keep reports in order
	parts []error    // by server; nil: healthy
}

func newServerReports(to func(error), servers int) *serverReports {
	return &serverReports{to: to, parts: make([]error, servers)}
}

func (r *serverReports) report(server int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[server] = err
	var texts []string
	down := 0
	for _, err := range r.parts {
		if err != nil {
			texts = append(texts, err.Error())
		}
		if pipeline.IsNotReady(err) {
			down++
		}
	}
	if len(texts) == 0 {
		r.to(nil)
		return
	}
	joined := errors.New(strings.Join(texts, "; "))
	if down == len(r.parts) {
		joined = pipeline.NotReady(joined)
	}
	r.to(joined)
}
