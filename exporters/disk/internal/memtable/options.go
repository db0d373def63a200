package memtable

// Options configure a Table. Zero values select the defaults given here.
type Options struct {
	// Name identifies the table in messages. Default: "memtable".
	Name string
	// Pool supplies the chunks. Default: a pool of the table's own.
	Pool *Pool
	// BlockRows is the number of rows of a block. Default: 4096.
	BlockRows int
	// MaxRows and MaxBytes are the sizes at which the table is full. The exporter sets both from
	// its configuration; tests use the defaults of 600,000 rows and 96 MiB.
	MaxRows  int
	MaxBytes int64
	Limits   Limits
}

// Limits limit the vocabulary: columns, words, shapes and other definitions. Zero values select the
// values of [DefaultLimits].
type Limits struct {
	// Words is the maximum number of words in the dictionary of a column.
	Words int
	// Names is the maximum number of span names of a service that become part of shapes.
	Names int
	// KeySets is the maximum number of sets of attribute keys of a service and span kind that
	// become shapes unchanged. The same number of further sets may become shapes without their rare
	// keys. It also limits sets of event keys.
	KeySets int
	// ServiceShapes is the maximum number of shapes of a service before further spans get the
	// simplest shape. At an eighth of it, and at an eighth of Shapes for the whole table, new
	// shapes leave names and events to the rows.
	ServiceShapes int
	// Shapes and Columns are the maximum numbers in the table before further spans get the simplest
	// shape.
	Shapes, Columns int
	// Services, Resources and Scopes are the numbers at which the table is full.
	Services, Resources, Scopes int
}

const (
	defaultBlockRows = 4096
	defaultMaxRows   = 600_000
	defaultMaxBytes  = 96 << 20
)

// DefaultLimits returns the default limits.
func DefaultLimits() Limits {
	return Limits{Words: 64 << 10, Names: 1024, KeySets: 64, ServiceShapes: 4096,
		Shapes: 64 << 10, Columns: 8 << 10, Services: 16 << 10, Resources: 32 << 10, Scopes: 16 << 10}
}

// New shapes become simpler above 1/simplifyShare of the shape limits.
const simplifyShare = 8

// Limits for one span. Above them, parts of the span are encoded as a whole.
const (
	maxAttributes      = 128 // attributes of a span with columns of their own
	maxEvents          = 4   // events of a span with columns
	maxEventAttributes = 32  // attributes of all these events together
	maxWord            = 256 // bytes of a word
)

func (o Options) orDefault() Options {
	if o.Name == "" {
		o.Name = "memtable"
	}
	if o.Pool == nil {
		o.Pool = NewPool(0, 0)
	}
	d := DefaultLimits()
	l := &o.Limits
	for _, v := range []struct {
		value *int
		def   int
	}{{&o.BlockRows, defaultBlockRows}, {&o.MaxRows, defaultMaxRows}, {&l.Words, d.Words}, {&l.Names, d.Names}, {&l.KeySets, d.KeySets},
		{&l.ServiceShapes, d.ServiceShapes}, {&l.Shapes, d.Shapes}, {&l.Columns, d.Columns}, {&l.Services, d.Services},
		{&l.Resources, d.Resources}, {&l.Scopes, d.Scopes}} {
		if *v.value <= 0 {
			*v.value = v.def
		}
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	return o
}
