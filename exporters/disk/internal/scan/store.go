package scan

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Options configure a Store. The zero value of a field means its default.
type Options struct {
	// Decoders is the maximum number of blocks that all queries together have open. Default: the
	// number of CPUs.
	Decoders int
	// Busy reports whether spans are arriving. If so, all queries together may have one fewer open
	// block (but at least one), so that a CPU is left for the spans: if queries keep all CPUs busy,
	// the process takes up to ten milliseconds to notice each arrival. Default: never.
	Busy func() bool
	// PieceBytes is the size from which a trace is returned in several pieces. Reading a trace
	// takes up to eight times that size in memory. Default: 4 MiB.
	PieceBytes int
	// MaxValues is the maximum length of a list of names, keys or values. Default: 100,000.
	MaxValues int
	// Memory is the maximum size of each cache that outlives a query: the names of services and
	// operations, and the calls between segments. The caches of attribute keys and values, and of
	// counts of values, have half of that size. Default: 8 MiB.
	Memory int64
	// OnDamage is called once per query for each part of a file that could not be read. Calls may
	// be concurrent.
	OnDamage func(*source.DamageError)
	// Losses describes for users which spans are missing although no source is damaged, because
	// files are lost. It is "" if none are. It becomes part of every result. Default: none.
	Losses func() string
}

const (
	defaultPieceBytes = 4 << 20
	defaultMaxValues  = 100_000
	defaultMemory     = 8 << 20
)

// View is a snapshot of what is stored. The caller releases it once.
type View interface {
	Sources() []source.Source
	Release()
}

// Store opens sessions on the sources of the span store. It is safe for concurrent use.
type Store struct {
	snapshot func() View
	Options  Options
	decoders chan struct{} // holds a token for each open block
	whenBusy chan struct{} // holds a token for each block that was opened while Busy; nil: no limit
}

// NewStore returns a Store. Each session calls snapshot once and reads the view that it returns.
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
	if o.Losses == nil {
		o.Losses = func() string { return "" }
	}
	s := &Store{snapshot: snapshot, Options: o, decoders: make(chan struct{}, o.Decoders)}
	if o.Busy != nil && o.Decoders > 1 {
		s.whenBusy = make(chan struct{}, o.Decoders-1)
	}
	return s
}

// Freeze returns a store whose sessions all read the same view, until the caller calls release.
// Sessions must be released first.
func (s *Store) Freeze() (frozen *Store, release func()) {
	v := s.snapshot()
	frozen = &Store{snapshot: func() View { return frozenView{v} }, Options: s.Options, decoders: s.decoders, whenBusy: s.whenBusy}
	return frozen, v.Release
}

// frozenView is a view that its owner releases.
type frozenView struct{ View }

// Release does nothing.
func (frozenView) Release() {}

// Lease is a view that is released at most once.
type Lease struct {
	view atomic.Pointer[View] // nil after the release, so that a lease of an ended query keeps no sources
}

// Release releases the view. Further calls do nothing.
func (l *Lease) Release() {
	if view := l.view.Swap(nil); view != nil {
		(*view).Release()
	}
}

// Session is the state of one query: its sources, and the damage found in them. It is not safe for
// concurrent use.
type Session struct {
	Sources []source.Source
	Options *Options
	Lease   *Lease
	// Memory is the memory that the query has reserved for the session: matches, plans, spans,
	// counters. It does not include open blocks, which use the memory of decoders.
	Memory *tracestore.Memory
	store  *Store
	damage *damage
}

// BeginQuery opens a session of the query of ctx, whose memory is charged to its account. The
// caller releases it.
func (s *Store) BeginQuery(ctx context.Context) *Session {
	session := s.Begin()
	session.Memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	return session
}

// Begin opens a session without a memory limit. The caller releases it.
func (s *Store) Begin() *Session {
	view, l := s.snapshot(), new(Lease)
	l.view.Store(&view)
	d := &damage{report: s.Options.OnDamage, losses: s.Options.Losses()}
	return &Session{Sources: view.Sources(), Options: &s.Options, Lease: l, store: s, damage: d}
}

// Fork returns a session on the same sources for another goroutine of the query of ctx. The damage
// that it finds is part of s. The caller releases its memory while s is open.
func (s *Session) Fork(ctx context.Context) *Session {
	fork := *s
	fork.Memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	return &fork
}

// Release releases the view and the memory.
func (s *Session) Release() {
	s.Lease.Release()
	s.Memory.Release()
}

// NoteDamage records the damage in err and returns the errors that are not damage. src and part are
// the location for errors without one; spans is the number of spans at that location, for errors
// without a number.
func (s *Session) NoteDamage(src int, part string, spans int, err error) error {
	if err == nil {
		return nil
	}
	return s.damage.note(s.Sources[src], part, spans, err)
}

// ReportDamage passes on damage that loses no spans, such as damaged statistics. It is not part of
// DamageReasons.
func (s *Session) ReportDamage(d *source.DamageError) { s.damage.report(d) }

// IgnoreDamage stops reports of damage.
func (s *Session) IgnoreDamage() { s.damage.report = func(*source.DamageError) {} }

// DamageReasons returns why the result is incomplete.
func (s *Session) DamageReasons() tracestore.Reasons { return s.damage.reasons() }

// Damaged returns a *tracestore.DamagedError if something is missing in the result, else nil.
func (s *Session) Damaged() error {
	reasons := s.DamageReasons()
	if reasons.Complete() {
		return nil
	}
	return &tracestore.DamagedError{Reasons: reasons, Err: s.damage.first}
}

// DamagedParts returns the number of parts that could not be read.
func (s *Session) DamagedParts() int {
	s.damage.mu.Lock()
	defer s.damage.mu.Unlock()
	return len(s.damage.seen)
}

// Tables returns the vocabulary of a source, or nil if it is damaged. It is not cached here,
// because sources have their own cache with a limit.
func (s *Session) Tables(src int) (*rows.Tables, error) {
	t, err := s.Sources[src].Tables()
	if err != nil {
		return nil, s.NoteDamage(src, "tables", 0, err)
	}
	return t, nil
}

// Blocks returns the blocks of a source, or none if the list is damaged.
func (s *Session) Blocks(src int) ([]source.BlockInfo, error) {
	blocks, err := s.Sources[src].Blocks()
	if err != nil {
		return nil, s.NoteDamage(src, "directory", 0, err)
	}
	return blocks, nil
}

// Decode runs f as soon as fewer than Options.Decoders calls are running, or one fewer while
// Options.Busy. f must not wait for anything but its source.
func (s *Session) Decode(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.store.whenBusy != nil && s.store.Options.Busy() {
		if err := acquire(ctx, s.store.whenBusy); err != nil {
			return err
		}
		defer release(s.store.whenBusy)
	}
	if err := acquire(ctx, s.store.decoders); err != nil {
		return err
	}
	defer release(s.store.decoders)
	return f()
}

// acquire puts a token into a channel as soon as it has capacity.
func acquire(ctx context.Context, tokens chan struct{}) error {
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func release(tokens chan struct{}) { <-tokens }

// OpenBlock runs f with an open block, within Decode.
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
