package disk

import (
	"runtime"
	"time"

	"github.com/tracing-backend/tracing/internal/wal"
	"github.com/tracing-backend/tracing/pipeline"
)

// Config is the configuration of the exporter.
type Config struct {
	Directory    string            `yaml:"directory" doc:"Folder of the store; empty means one of its own below service.data_dir."`
	Retention    RetentionConfig   `yaml:"retention" doc:"How long spans stay."`
	Sync         string            `yaml:"sync" doc:"What an acknowledgement means: always (synced to the disk), interval (written, synced every sync_interval), or os (written, synced when the operating system likes); the death of the process loses nothing in any of them, a power cut does in the last two."`
	SyncInterval pipeline.Duration `yaml:"sync_interval" doc:"Time between syncs where sync is interval."`
	SyncGap      pipeline.Duration `yaml:"sync_gap" doc:"Least time between two syncs where sync is always, for disks on which a sync is expensive; acknowledgements wait for it."`
	Memtable     MemtableConfig    `yaml:"memtable" doc:"Spans in memory, from which segments are made."`
	MaxWait      pipeline.Duration `yaml:"max_wait" doc:"How long a request waits for room when spans come faster than segments are written, before the sender is told to come back later."`
	DiskFull     string            `yaml:"disk_full" doc:"What happens when less than min_free is left on the disk: refuse (new spans are refused, with a hint to try again) or drop_oldest (the oldest segments go, before their retention ends)."`
	MinFree      pipeline.ByteSize `yaml:"min_free" doc:"Space on the disk below which it counts as full."`
	Reserve      pipeline.ByteSize `yaml:"reserve" doc:"Size of a file that is given up when the disk is full, so that what is in memory can still become a segment and free its log; 0 keeps none."`
	Decoders     int               `yaml:"decoders" doc:"Blocks that all queries together decode at once; each takes a few MiB."`
}

// RetentionConfig says when spans go.
type RetentionConfig struct {
	Time pipeline.Duration `yaml:"time" doc:"Spans are deleted this long after they came; 0 keeps them until size says otherwise."`
	Size pipeline.ByteSize `yaml:"size" doc:"Size of the whole folder above which the oldest segments are deleted; 0 sets no limit."`
}

// MemtableConfig says when a memtable is made a segment. There are two at most: one that takes spans and one that is being written.
type MemtableConfig struct {
	MaxBytes pipeline.ByteSize `yaml:"max_bytes" doc:"Memory for the spans of one memtable; the log has about the same size."`
	MaxSpans int               `yaml:"max_spans" doc:"Spans in one memtable."`
	MaxAge   pipeline.Duration `yaml:"max_age" doc:"Age at which a memtable is written however small it is."`
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
		Memtable:     MemtableConfig{MaxBytes: 48 << 20, MaxSpans: 500_000, MaxAge: pipeline.Duration(10 * time.Minute)},
		MaxWait:      pipeline.Duration(5 * time.Second),
		DiskFull:     refuseWhenFull,
		MinFree:      128 << 20,
		Reserve:      32 << 20,
		Decoders:     max(2, runtime.GOMAXPROCS(0)),
	}
}

// Bounds of what can be configured.
const (
	minMemtable, maxMemtable = 1 << 20, 1 << 30
	minSpans, maxSpans       = 1000, 10_000_000
	minRetention             = time.Minute
	maxDecoders              = 1024
)

// Validate checks what the types cannot.
func (c *Config) Validate() error {
	switch {
	case c.Sync != string(wal.SyncAlways) && c.Sync != string(wal.SyncInterval) && c.Sync != string(wal.SyncOS):
		return pipeline.BadKey("sync", "is %q; it is one of always, interval, os", c.Sync)
	case c.SyncInterval <= 0:
		return pipeline.BadKey("sync_interval", "must be positive")
	case c.SyncGap < 0:
		return pipeline.BadKey("sync_gap", "must not be negative")
	case c.DiskFull != refuseWhenFull && c.DiskFull != dropWhenFull:
		return pipeline.BadKey("disk_full", "is %q; it is one of refuse, drop_oldest", c.DiskFull)
	case c.Retention.Time != 0 && time.Duration(c.Retention.Time) < minRetention:
		return pipeline.BadKey("retention.time", "must be at least %s, or 0 for no limit", minRetention)
	case c.Retention.Size < 0:
		return pipeline.BadKey("retention.size", "must not be negative")
	case c.Memtable.MaxBytes < minMemtable || c.Memtable.MaxBytes > maxMemtable:
		return pipeline.BadKey("memtable.max_bytes", "must be between %s and %s", pipeline.ByteSize(minMemtable), pipeline.ByteSize(maxMemtable))
	case c.Memtable.MaxSpans < minSpans || c.Memtable.MaxSpans > maxSpans:
		return pipeline.BadKey("memtable.max_spans", "must be between %d and %d", minSpans, maxSpans)
	case c.Memtable.MaxAge <= 0:
		return pipeline.BadKey("memtable.max_age", "must be positive")
	case c.MaxWait < 0:
		return pipeline.BadKey("max_wait", "must not be negative")
	case c.MinFree < 0 || c.Reserve < 0:
		return pipeline.BadKey("min_free", "and reserve must not be negative")
	case c.Decoders < 1 || c.Decoders > maxDecoders:
		return pipeline.BadKey("decoders", "must be between 1 and %d", maxDecoders)
	}
	return nil
}

// Factory makes exporters of type "disk".
func Factory() pipeline.Factory {
	return pipeline.Exporter("disk", defaults, newExporter).
		Doc("Stores spans in files of its own, synced before they are acknowledged; the store for one machine.")
}
