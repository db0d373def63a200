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
	Directory    string            `yaml:"directory" path:"data" doc:"Folder of the store. Empty means a folder in service.data_dir."`
	Retention    RetentionConfig   `yaml:"retention" doc:"Maximum age and total size of stored spans. The oldest spans are deleted first."`
	Sync         string            `yaml:"sync" doc:"When the write-ahead log is synced to disk: always (before each acknowledgement), interval (every sync_interval) or os (when the operating system decides). A process crash loses no acknowledged spans. A power failure can, with interval or os."`
	SyncInterval pipeline.Duration `yaml:"sync_interval" doc:"Time between syncs with sync: interval."`
	SyncGap      pipeline.Duration `yaml:"sync_gap" doc:"Minimum time between two syncs with sync: always, for disks with slow syncs. Acknowledgements wait for it."`
	Memtable     MemtableConfig    `yaml:"memtable" doc:"Memtables, which hold recent spans until they are flushed to segments."`
	Merge        MergeConfig       `yaml:"merge" doc:"Background compaction, which merges many small segments into a few large ones."`
	MaxWait      pipeline.Duration `yaml:"max_wait" doc:"Maximum time that a request waits when spans arrive faster than segments can be written. After that, it is refused as overloaded."`
	DiskFull     string            `yaml:"disk_full" doc:"What happens when free disk space is below min_free: refuse (refuse spans as overloaded) or drop_oldest (delete the oldest segments before their retention ends)."`
	MinFree      pipeline.ByteSize `yaml:"min_free" doc:"Free disk space below which the disk counts as full."`
	Reserve      pipeline.ByteSize `yaml:"reserve" doc:"Size of a reserve file, which is deleted when the disk is full so that the memtable can be flushed. 0 disables the reserve."`
	Cache        pipeline.ByteSize `yaml:"cache" doc:"Maximum memory for cached segment metadata, such as dictionaries, block indexes, names and counts of values. The default is 1/30 of the available memory, at most 64MiB."`
	AllowDelete  bool              `yaml:"allow_delete" doc:"Whether the admin extension accepts requests to delete traces, services and time ranges."`
	Decoders     int               `yaml:"decoders" doc:"Maximum number of segment blocks that are decoded in parallel for all queries together, with up to 8MiB of memory each. The default is the number of CPUs, at least 2, or fewer so that the blocks take 1/20 of the available memory. While spans arrive, one fewer is used, but at least one."`
}

// RetentionConfig limits the age and the size of stored spans.
type RetentionConfig struct {
	Time pipeline.Duration `yaml:"time" doc:"Time for which spans are stored after their arrival. Spans in merged segments can stay up to one eighth longer. 0 disables the limit."`
	Size pipeline.ByteSize `yaml:"size" doc:"Maximum size of the store folder. Above it, the oldest segments are deleted. 0 disables the limit."`
}

// MemtableConfig says when a memtable is flushed. There are at most two: one that accepts spans and
// one that is being flushed.
type MemtableConfig struct {
	MaxBytes pipeline.ByteSize `yaml:"max_bytes" doc:"Maximum memory for one memtable; its write-ahead log has about the same size. The default is 1/36 of the available memory, at most 40MiB."`
	MaxSpans int               `yaml:"max_spans" doc:"Maximum number of spans in one memtable."`
	MaxAge   pipeline.Duration `yaml:"max_age" doc:"Maximum age of a memtable, after which it is flushed."`
}

// MergeConfig says which segments are merged, and at what cost. Each flushed segment is merged
// once, with neighbors in time; a merged segment stays unchanged until it expires.
type MergeConfig struct {
	Enabled     bool    `yaml:"enabled" doc:"Whether segments are merged. Many small ones take more disk space and slow down queries."`
	MinSegments int     `yaml:"min_segments" doc:"Minimum number of adjacent segments for a merge, at most max_segments. For past days, two are enough."`
	MaxSegments int     `yaml:"max_segments" doc:"Maximum number of segments in one merge, with up to 4MiB of memory each. The default is 16, or as many as fit into 1/12 of the available memory, at least 4."`
	MaxSpans    int     `yaml:"max_spans" doc:"Maximum number of spans in one merged segment, which also takes at most one eighth of retention::size and of retention::time."`
	BusyShare   float64 `yaml:"busy_share" doc:"Fraction of one CPU core, at most 1, that merging uses while spans arrive. If none has arrived for a second, or more than 64 segments wait, it uses one core."`
}

// Values of DiskFull.
const (
	refuseWhenFull = "refuse"
	dropWhenFull   = "drop_oldest"
)

// Defaults that depend on the available memory: fractions of it, and maximums.
const (
	memtablePart, maxDefaultMemtable = 36, 40 << 20
	cachePart, maxDefaultCache       = 30, 64 << 20
	mergeInputPart                   = 12 // of the memory of the inputs of a merge
	decoderPart                      = 20 // of the memory of decoders
	minMergeInputs                   = 4
)

// defaultMergeInputs returns the default of merge.max_segments.
func defaultMergeInputs() int {
	const most = 16
	return max(minMergeInputs, int(pipeline.MemoryShare(mergeInputPart, most*inputMemory)/inputMemory))
}

// defaultDecoders returns the default of decoders.
func defaultDecoders() int {
	most := max(2, runtime.GOMAXPROCS(0))
	return max(1, int(pipeline.MemoryShare(decoderPart, pipeline.ByteSize(most*decoderMemory))/decoderMemory))
}

func defaults() Config {
	inputs := defaultMergeInputs()
	return Config{
		Retention:    RetentionConfig{Time: pipeline.Duration(72 * time.Hour), Size: 50 << 30},
		Sync:         string(wal.SyncAlways),
		SyncInterval: pipeline.Duration(time.Second),
		Memtable: MemtableConfig{MaxBytes: pipeline.MemoryShare(memtablePart, maxDefaultMemtable), MaxSpans: 500_000,
			MaxAge: pipeline.Duration(10 * time.Minute)},
		Merge:    MergeConfig{Enabled: true, MinSegments: 8, MaxSegments: inputs, MaxSpans: 8_000_000, BusyShare: 0.25},
		MaxWait:  pipeline.Duration(5 * time.Second),
		DiskFull: refuseWhenFull,
		MinFree:  128 << 20,
		Reserve:  32 << 20,
		Cache:    pipeline.MemoryShare(cachePart, maxDefaultCache),
		Decoders: defaultDecoders(),
	}
}

// Bounds of configurable values.
const (
	minMemtable, maxMemtable = 1 << 20, 160 << 20 // a segment limits its vocabulary to 256 MiB
	minSpans, maxSpans       = 1000, 10_000_000
	minRetention             = time.Minute
	maxDecoders              = 1024
	maxMergeSegments         = 64
	minMergeSpans            = 100_000
	maxMergeSpans            = 32_000_000
)

// KeepsOnDisk returns true.
func (c *Config) KeepsOnDisk() bool { return true }

// Validate checks values beyond their types.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, pipeline.BadKey(key, format, args...))
		}
	}
	modes := []string{string(wal.SyncAlways), string(wal.SyncInterval), string(wal.SyncOS)}
	check(slices.Contains(modes, c.Sync), "sync", "%q is not one of %s", c.Sync, strings.Join(modes, ", "))
	check(c.SyncInterval > 0, "sync_interval", "must be positive")
	check(c.SyncGap >= 0, "sync_gap", "must not be negative")
	check(c.MaxWait >= 0, "max_wait", "must not be negative")
	check(c.DiskFull == refuseWhenFull || c.DiskFull == dropWhenFull, "disk_full",
		"%q is not one of %s, %s", c.DiskFull, refuseWhenFull, dropWhenFull)
	check(c.Decoders >= 1 && c.Decoders <= maxDecoders, "decoders", "must be between 1 and %d", maxDecoders)
	check(c.Retention.Time == 0 || time.Duration(c.Retention.Time) >= minRetention, "retention::time",
		"must be at least %s, or 0 for no limit", minRetention)
	errs = append(errs, c.Merge.check())
	m := &c.Memtable
	check(m.MaxSpans >= minSpans && m.MaxSpans <= maxSpans, "memtable::max_spans", "must be between %d and %d", minSpans, maxSpans)
	check(m.MaxAge > 0, "memtable::max_age", "must be positive")
	if m.MaxBytes < minMemtable || m.MaxBytes > maxMemtable {
		check(false, "memtable::max_bytes", "must be between %s and %s", pipeline.ByteSize(minMemtable), pipeline.ByteSize(maxMemtable))
	} else {
		check(c.Retention.Size == 0 || c.Retention.Size >= c.overhead(), "retention::size",
			"must be at least %s (twice the size of two logs and the reserve), or 0 for no limit", c.overhead())
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
	check(c.MaxSegments >= 2 && c.MaxSegments <= maxMergeSegments, "max_segments", "must be between 2 and %d", maxMergeSegments)
	check(c.MaxSpans >= minMergeSpans && c.MaxSpans <= maxMergeSpans, "max_spans", "must be between %d and %d", minMergeSpans, maxMergeSpans)
	check(c.BusyShare > 0 && c.BusyShare <= 1, "busy_share", "must be greater than 0 and at most 1")
	return errors.Join(errs...)
}

// overhead returns the minimum size of a folder that can hold segments in addition to two logs and
// the reserve.
func (c *Config) overhead() pipeline.ByteSize {
	return 2 * (2*(c.Memtable.MaxBytes+logSlack) + c.Reserve)
}

// Factory makes exporters of type "disk".
func Factory() pipeline.Factory {
	return pipeline.Exporter("disk", defaults, newExporter).
		Doc("Stores spans in local files on one machine and syncs them to disk before they are acknowledged.")
}
