package search

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Options configure an Engine. Zero values mean the defaults that are named with each.
type Options struct {
	// Decoders is how many blocks may be open at once, by all queries together; one for each processor.
	Decoders int
	// PieceBytes is the size above which a trace comes in several pieces; 4 MiB. Reading a trace takes up to eight times that.
	PieceBytes int
	// MaxValues is the greatest length of a list of names, keys or values; 100,000.
	MaxValues int
	// Memory bounds what is kept between queries: names, calls between segments, and, by half of it, keys and values of attributes; 8 MiB.
	Memory int64
	// OnDamage is told once per query of every part of a file that it could not read. It is called by several goroutines at once.
	OnDamage func(*source.DamageError)
}

const (
	defaultPieceBytes = 4 << 20
	defaultMaxValues  = 100_000
	defaultMemory     = 8 << 20
)

// View is everything that is stored at one moment. It is released once.
type View interface {
	Sources() []source.Source
	Release()
}

// Engine answers queries. Safe for concurrent use.
type Engine struct {
	snapshot func() View
	options  Options
	decoders chan struct{} // holds a token for every decoder at work
	names    atomic.Pointer[names]
	texts    *textCache
	ledgers  ledgers
}

var (
	_ tracestore.Reader           = (*Engine)(nil)
	_ tracestore.Catalog          = (*Engine)(nil)
	_ tracestore.AttributeCatalog = (*Engine)(nil)
)

// New returns an engine that searches what snapshot returns at the beginning of each query. A view is released when the results have been
// ranged over, also when the caller stops early, or when the garbage collector finds that nobody is going to.
func New(snapshot func() View, o Options) *Engine {
	if o.Decoders <= 0 {
		o.Decoders = runtime.GOMAXPROCS(0)
	}
	if o.PieceBytes <= 0 {
		o.PieceBytes = defaultPieceBytes
	}
	if o.MaxValues <= 0 {
		o.MaxValues = defaultMaxValues
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	if o.OnDamage == nil {
		o.OnDamage = func(*source.DamageError) {}
	}
	return &Engine{snapshot: snapshot, options: o, decoders: make(chan struct{}, o.Decoders), texts: newTextCache(o.Memory / 2),
		ledgers: newLedgers()}
}

// lease is a view that is released once, whoever comes first.
type lease struct {
	view     View
	released atomic.Bool
}

func (l *lease) release() {
	if l.released.CompareAndSwap(false, true) {
		l.view.Release()
	}
}

// session is what one call reads: sources at one moment, and the damage that was met in them. Not for concurrent use.
type session struct {
	engine  *Engine
	lease   *lease
	sources []source.Source
	damage  damage
}

// begin opens a session; the caller ends it by releasing the lease.
func (e *Engine) begin() *session {
	l := &lease{view: e.snapshot()}
	sources := l.view.Sources()
	return &session{engine: e, lease: l, sources: sources, damage: damage{report: e.options.OnDamage}}
}

// tablesOf returns the tables of a source, and nil where they are damaged. They are not kept: a source does so within its means.
func (s *session) tablesOf(src int) (*rows.Tables, error) {
	t, err := s.sources[src].Tables()
	if err != nil {
		return nil, s.damage.note(s.sources[src], "tables", 0, err)
	}
	return t, nil
}

// blocksOf returns the blocks of a source, and none where their directory is damaged.
func (s *session) blocksOf(src int) ([]source.BlockInfo, error) {
	blocks, err := s.sources[src].Blocks()
	if err != nil {
		return nil, s.damage.note(s.sources[src], "directory", 0, err)
	}
	return blocks, nil
}

// decode runs f while it holds a place among the decoders. f must not wait for anything but its source.
func (s *session) decode(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.engine.decoders <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.engine.decoders }()
	return f()
}

// open runs f with an open block.
func (s *session) open(ctx context.Context, src, block int, f func(b source.Block) error) error {
	return s.decode(ctx, func() error {
		b, err := s.sources[src].Open(ctx, block)
		if err != nil {
			return err
		}
		defer b.Close()
		return f(b)
	})
}
