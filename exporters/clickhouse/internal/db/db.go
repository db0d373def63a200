// Package db runs statements on ClickHouse: on one server, or on any of several servers.
//
// Files: config.go is the configuration; dial.go opens connections; hosts.go chooses a server;
// insert.go, select.go and columns.go run statements; settings.go are the settings of statements;
// errors.go classifies errors.
package db

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// DB runs statements. Safe for concurrent use.
type DB struct {
	cfg     Config
	dialect Dialect
	log     *zap.Logger
	dialer  *dialer
	hosts   hosts
	inserts chan struct{} // a slot for each insert
	down    chan struct{} // see Down; has a buffer of 1

	replicas atomic.Int64 // see SetReplicas
}

// New returns a DB. It opens no connection.
func New(set pipeline.Settings, c Config, dialect Dialect) (*DB, error) {
	dialer, err := newDialer(set, c)
	if err != nil {
		return nil, err
	}
	d := &DB{cfg: c, dialect: dialect, log: set.Logger, dialer: dialer, inserts: make(chan struct{}, c.MaxInserts),
		down: make(chan struct{}, 1)}
	d.hosts.now = set.Env.Now
	for _, address := range c.Endpoints {
		d.hosts.list = append(d.hosts.list, &host{address: address})
	}
	return d, nil
}

// Start reads certificates and secrets. It creates connection pools without opening connections;
// Close closes them.
func (d *DB) Start(context.Context) error {
	if err := d.dialer.load(); err != nil {
		return err
	}
	for _, h := range d.hosts.list {
		conn, err := clickhouse.Open(d.dialer.options(h.address))
		if err != nil {
			return errors.Join(fmt.Errorf("clickhouse %s: %w", h.address, err), d.Close())
		}
		h.conn = conn
	}
	return nil
}

// Close closes all connections.
func (d *DB) Close() error {
	var errs []error
	for _, h := range d.hosts.list {
		if h.conn != nil {
			errs = append(errs, h.conn.Close())
		}
	}
	return errors.Join(errs...)
}

// Table returns the quoted name of a table with its database.
func (d *DB) Table(name string) string { return Quote(d.cfg.Database) + "." + Quote(name) }

// Down yields a value when a statement failed and no server is known to work.
func (d *DB) Down() <-chan struct{} { return d.down }

func (d *DB) failed(h *host, err error) {
	if h.failed(d.hosts.now()) {
		d.log.Warn("server cannot be reached", zap.String("host", h.address), zap.Error(err))
	}
	if d.hosts.allDown() {
		select {
		case d.down <- struct{}{}:
		default: // known
		}
	}
}

func (d *DB) worked(ctx context.Context, h *host) {
	if ctx.Err() == nil && h.worked() {
		d.log.Info("server can be reached again", zap.String("host", h.address))
	}
}
