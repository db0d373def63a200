package disk

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// Config is the configuration of the exporter.
type Config struct {
	Directory    string            `yaml:"directory" doc:"Folder of the store; empty means one of its own below service.data_dir."`
	Retention    RetentionConfig   `yaml:"retention" doc:"How long spans stay."`
	Sync         string            `yaml:"sync" doc:"What an acknowledgement means: always (synced to the disk), interval (written, synced every sync_interval), or os (written, synced when the operating system likes); the death of the process loses nothing in any of them, a power cut does in the last two."`
	SyncInterval pipeline.Duration `yaml:"sync_interval" doc:"Time between syncs where sync is interval."`
	SyncGap      pipeline.Duration `yaml:"sync_gap" doc:"Least time between two syncs where sync is always, for disks on which a sync is expensive; acknowledgements wait for it."`
	Memtable     MemtableConfig    `yaml:"memtable" doc:"Spans in memory, from which segments are made."`
	Merge        MergeConfig       `yaml:"merge" doc:"Making few large segments of many small ones, in the background."`
	MaxWait      pipeline.Duration `yaml:"max_wait" doc:"How long a request waits for room when spans come faster than segments are written, before the sender is told to come back later."`
	DiskFull     string            `yaml:"disk_full" doc:"What happens when less than min_free is left on the disk: refuse (new spans are refused, with a hint to try again) or drop_oldest (the oldest segments go, before their retention ends)."`
	MinFree      pipeline.ByteSize `yaml:"min_free" doc:"Space on the disk below which it counts as full."`
	Reserve      pipeline.ByteSize `yaml:"reserve" doc:"Size of a file that is given up when the disk is full, so that what is in memory can still become a segment and free its log; 0 keeps none."`
	Cache        pipeline.ByteSize `yaml:"cache" doc:"Memory for what queries need of segments again and again: vocabularies, lists of blocks."`
	AllowDelete  bool              `yaml:"allow_delete" doc:"Whether operators may delete traces, services and ranges of time before their retention ends, through the admin extension."`
	Decoders     int               `yaml:"decoders" doc:"Blocks that all queries together decode at once; each takes a few MiB."`
}

// RetentionConfig says when spans go.
type RetentionConfig struct {
	Time pipeline.Duration `yaml:"time" doc:"Spans are deleted this long after they came, or up to an eighth longer where they share a merged segment with later ones; 0 keeps them until size says otherwise."`
	Size pipeline.ByteSize `yaml:"size" doc:"Size of the whole folder above which the oldest segments are deleted; 0 sets no limit."`
}

// MemtableConfig says when a memtable is made a segment. There are two at most: one that takes spans and one that is being written.
type MemtableConfig struct {
	MaxBytes pipeline.ByteSize `yaml:"max_bytes" doc:"Memory for the spans of one memtable; the log has about the same size."`
	MaxSpans int               `yaml:"max_spans" doc:"Spans in one memtable."`
	MaxAge   pipeline.Duration `yaml:"max_age" doc:"Age at which a memtable is written however small it is."`
}

// MergeConfig says which segments are merged, and how hard. Each is merged once, with neighbours in time; what came of it stays as it is until
// it expires.
type MergeConfig struct {
	Enabled     bool    `yaml:"enabled" doc:"Whether segments are merged. Many small ones cost disk space, and queries time."`
	MinSegments int     `yaml:"min_segments" doc:"Neighbours that a merge waits for; of a day that is over, two are enough."`
	MaxSegments int     `yaml:"max_segments" doc:"Most segments in one merge."`
	MaxSpans    int     `yaml:"max_spans" doc:"Most spans in one merged segment. An eighth of retention::size and of retention::time limit it, too."`
	BusyShare   float64 `yaml:"busy_share" doc:"Share of one processor for merging while spans come in; when none has come for a second, or more than 64 segments wait, it takes a whole one. It always gives way to the writing of memtables."`
}

// Values of DiskFull.
const (
	refuseWhenFull = "refuse"
	dropWhenFull   = "drop_oldest"
)

func defaults() Config {
	return Config{
		Retention:    RetentionConfig{Time: pipeline.Duration(72 * time.Hour), Size: 50 << 30},
		Sync:         string(wal.SyncAlways),
		SyncInterval: pipeline.Duration(time.Second),
		Memtable:     MemtableConfig{MaxBytes: 40 << 20, MaxSpans: 500_000, MaxAge: pipeline.Duration(10 * time.Minute)},
		Merge:        MergeConfig{Enabled: true, MinSegments: 8, MaxSegments: 16, MaxSpans: 8_000_000, BusyShare: 0.25},
		MaxWait:      pipeline.Duration(5 * time.Second),
		DiskFull:     refuseWhenFull,
		MinFree:      128 << 20,
		Reserve:      32 << 20,
		Cache:        64 << 20,
		Decoders:     max(2, runtime.GOMAXPROCS(0)),
	}
}

// Bounds of what can be configured.
const (
	minMemtable, maxMemtable = 1 << 20, 160 << 20 // a segment takes no vocabulary beyond 256 MiB
	minSpans, maxSpans       = 1000, 10_000_000
	minRetention             = time.Minute
	maxDecoders              = 1024
	maxMergeSegments         = 64
	minMergeSpans            = 100_000
	maxMergeSpans            = 32_000_000
)

// Validate checks what the types cannot.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, pipeline.BadKey(key, format, args...))
		}
	}
	modes := []string{string(wal.SyncAlways), string(wal.SyncInterval), string(wal.SyncOS)}
	check(slices.Contains(modes, c.Sync), "sync", "is %q; it is one of %s", c.Sync, strings.Join(modes, ", "))
	check(c.SyncInterval > 0, "sync_interval", "must be positive")
	check(c.SyncGap >= 0, "sync_gap", "must not be negative")
	check(c.MaxWait >= 0, "max_wait", "must not be negative")
	check(c.DiskFull == refuseWhenFull || c.DiskFull == dropWhenFull, "disk_full", "is %q; it is one of %s, %s", c.DiskFull, refuseWhenFull, dropWhenFull)
	check(c.Decoders >= 1 && c.Decoders <= maxDecoders, "decoders", "must be between 1 and %d", maxDecoders)
	check(c.Retention.Time == 0 || time.Duration(c.Retention.Time) >= minRetention, "retention::time", "must be at least %s, or 0 for no limit",
		minRetention)
	errs = append(errs, c.Merge.check())
	m := &c.Memtable
	check(m.MaxSpans >= minSpans && m.MaxSpans <= maxSpans, "memtable::max_spans", "must be between %d and %d", minSpans, maxSpans)
	check(m.MaxAge > 0, "memtable::max_age", "must be positive")
	if m.MaxBytes < minMemtable || m.MaxBytes > maxMemtable {
		check(false, "memtable::max_bytes", "must be between %s and %s", pipeline.ByteSize(minMemtable), pipeline.ByteSize(maxMemtable))
	} else {
		check(c.Retention.Size == 0 || c.Retention.Size >= c.overhead(), "retention::size",
			"must be at least %s, twice what two logs and the reserve take, or 0 for no limit", c.overhead())
	}
	return errors.Join(errs...)
}

func (c *MergeConfig) check() error {
	var errs []error
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, pipeline.BadKey("merge::"+key, format, args...))
		}
	}
	check(c.MinSegments >= 2, "min_segments", "must be at least 2")
	check(c.MaxSegments >= c.MinSegments && c.MaxSegments <= maxMergeSegments, "max_segments", "must be between min_segments and %d",
		maxMergeSegments)
	check(c.MaxSpans >= minMergeSpans && c.MaxSpans <= maxMergeSpans, "max_spans", "must be between %d and %d", minMergeSpans, maxMergeSpans)
	check(c.BusyShare > 0 && c.BusyShare <= 1, "busy_share", "must be greater than 0 and at most 1")
	return errors.Join(errs...)
}

// overhead returns the least size of a folder that has room for segments beside two logs and the reserve.
func (c *Config) overhead() pipeline.ByteSize {
	return 2 * (2*(c.Memtable.MaxBytes+logSlack) + c.Reserve)
}

// Factory makes exporters of type "disk".
func Factory() pipeline.Factory {
	return pipeline.Exporter("disk", defaults, newExporter).
		Doc("Stores spans in files of its own, synced before they are acknowledged; the store for one machine.")
}
