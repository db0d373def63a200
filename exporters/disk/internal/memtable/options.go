package memtable

// Options configure a Table. Zero values mean the defaults that are named with each.
type Options struct {
	// Name tells the table from other sources in messages; "memtable".
	Name string
	// Pool supplies the chunks; nil: a pool of the table's own.
	Pool *Pool
	// BlockRows is how many rows make a block; 4096.
	BlockRows int
	// MaxRows and MaxBytes are the size at which the table is full; 600,000 rows and 96 MiB.
	MaxRows  int
	MaxBytes int64
	Limits   Limits
}

// Limits bound the vocabulary. Zero values mean the defaults of [DefaultLimits].
type Limits struct {
	// Words is the greatest number of words in a column's dictionary.
	Words int
	// Names is how many span names of one service become part of shapes.
	Names int
	// KeySets is how many sets of attribute keys of one service and span kind become shapes as they are. As many again may follow with the
	// rare keys left out. It also counts sets of event keys.
	KeySets int
	// ServiceShapes is how many shapes one service may have before further spans get the plainest shape there is. At an eighth of it, and
	// at an eighth of Shapes in the whole table, new shapes leave the name and the events to the rows.
	ServiceShapes int
	// Shapes and Columns are how many there are before further spans get the plainest shape there is.
	Shapes, Columns int
	// Services, Resources and Scopes are the sizes at which the table is full.
	Services, Resources, Scopes int
}

const (
	defaultBlockRows = 4096
	defaultMaxRows   = 600_000
	defaultMaxBytes  = 96 << 20
)

// DefaultLimits returns the limits that hold where nothing else is set.
func DefaultLimits() Limits {
	return Limits{Words: 64 << 10, Names: 1024, KeySets: 64, ServiceShapes: 4096,
		Shapes: 64 << 10, Columns: 8 << 10, Services: 16 << 10, Resources: 32 << 10, Scopes: 16 << 10}
}

// thriftShare: new shapes become plainer when one in so many of the possible ones is taken.
const thriftShare = 8

// Bounds of one span. Beyond them parts of it are encoded as a whole.
const (
	maxAttributes      = 128 // of a span that have columns of their own
	maxEvents          = 4   // of a span that have columns
	maxEventAttributes = 32  // of all these events together
	maxWord            = 256 // bytes of a text that may become a word
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
		value     *int
		otherwise int
	}{{&o.BlockRows, defaultBlockRows}, {&o.MaxRows, defaultMaxRows}, {&l.Words, d.Words}, {&l.Names, d.Names}, {&l.KeySets, d.KeySets},
		{&l.ServiceShapes, d.ServiceShapes}, {&l.Shapes, d.Shapes}, {&l.Columns, d.Columns}, {&l.Services, d.Services},
		{&l.Resources, d.Resources}, {&l.Scopes, d.Scopes}} {
		if *v.value <= 0 {
			*v.value = v.otherwise
		}
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	return o
}
