package scan

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
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

// Store gives access to what is stored. Safe for concurrent use.
type Store struct {
	snapshot func() View
	Options  Options
	decoders chan struct{} // holds a token for every decoder at work
}

// NewStore returns a Store of what snapshot returns at the beginning of each query. A view is released when the results have been
// ranged over, also when the caller stops early, or when the garbage collector finds that nobody is going to.
func NewStore(snapshot func() View, o Options) *Store {
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
	return &Store{snapshot: snapshot, Options: o, decoders: make(chan struct{}, o.Decoders)}
}

// lease is a view that is released once, whoever comes first.
type Lease struct {
	view     View
	released atomic.Bool
}

// Release releases the view if that was not done before.
func (l *Lease) Release() {
	if l.released.CompareAndSwap(false, true) {
		l.view.Release()
	}
}

// session is what one call reads: sources at one moment, and the damage that was met in them. Not for concurrent use.
type Session struct {
	Sources []source.Source
	Options *Options
	Lease   *Lease
	store   *Store
	damage  damage
}

// begin opens a session; the caller ends it by releasing it.
func (s *Store) Begin() *Session {
	l := &Lease{view: s.snapshot()}
	return &Session{Sources: l.view.Sources(), Options: &s.Options, Lease: l, store: s, damage: damage{report: s.Options.OnDamage}}
}

// release releases the view.
func (s *Session) Release() { s.Lease.Release() }

// noteDamage takes the damage out of err, and returns what else is wrong. src and part name the part for errors that do not; spans is how
// many it holds where the error does not know.
func (s *Session) NoteDamage(src int, part string, spans int, err error) error {
	if err == nil {
		return nil
	}
	return s.damage.note(s.Sources[src], part, spans, err)
}

// reportDamage reports damage that costs no spans, and is not part of the reason.
func (s *Session) ReportDamage(d *source.DamageError) { s.damage.report(d) }

// ignoreDamage makes damage that is found from now on go unreported.
func (s *Session) IgnoreDamage() { s.damage.report = func(*source.DamageError) {} }

// damageReason says in the user's words what is missing; "" when nothing is.
func (s *Session) DamageReason() string { return s.damage.reason() }

// firstDamage returns the damage that was found first, or nil.
func (s *Session) FirstDamage() error { return s.damage.first }

// damagedParts returns how many parts could not be read.
func (s *Session) DamagedParts() int { return len(s.damage.seen) }

// tablesOf returns the tables of a source, and nil where they are damaged. They are not kept: a source does so within its means.
func (s *Session) Tables(src int) (*rows.Tables, error) {
	t, err := s.Sources[src].Tables()
	if err != nil {
		return nil, s.NoteDamage(src, "tables", 0, err)
	}
	return t, nil
}

// blocksOf returns the blocks of a source, and none where their directory is damaged.
func (s *Session) Blocks(src int) ([]source.BlockInfo, error) {
	blocks, err := s.Sources[src].Blocks()
	if err != nil {
		return nil, s.NoteDamage(src, "directory", 0, err)
	}
	return blocks, nil
}

// decode runs f while it holds a place among the decoders. f must not wait for anything but its source.
func (s *Session) Decode(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.store.decoders <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.store.decoders }()
	return f()
}

// open runs f with an open block.
func (s *Session) OpenBlock(ctx context.Context, src, block int, f func(b source.Block) error) error {
	return s.Decode(ctx, func() error {
		b, err := s.Sources[src].Open(ctx, block)
		if err != nil {
			return err
		}
		defer b.Close()
		return f(b)
	})
}
