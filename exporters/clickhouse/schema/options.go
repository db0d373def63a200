package schema

import (
	"errors"
	"fmt"
	"time"
)

// Shape says how the rows of a table are distributed over servers.
type Shape string

// The shapes.
const (
	// Single is one server with all rows.
	Single Shape = "single"
	// Replicated is a cluster in which each server has all rows.
	Replicated Shape = "replicated"
	// Sharded is a cluster in which each shard has a part of the traces, usually on several
	// replicas.
	Sharded Shape = "sharded"
)

// Options say what to render.
type Options struct {
	Database string
	Shape    Shape  // "" is Single
	Cluster  string // name of the cluster in system.clusters; only for Replicated and Sharded
	// ReplicatedDatabase reports whether the database has the engine Replicated, which distributes
	// definitions itself and rejects ON CLUSTER.
	ReplicatedDatabase bool
	// Spans and Statistics are retention times, which are rounded up to whole days. 0 disables the
	// limit.
	Spans, Statistics time.Duration
	// Fsync makes the server sync each insert to disk before it acknowledges it.
	Fsync bool
	// DedupWindow is the number of recent inserts into a table that the server recognizes when they
	// are repeated. 0 means DefaultDedupWindow.
	DedupWindow int
	// Blind reports that the servers cannot tell what they have. Apply then runs all statements of
	// [Schema.Statements].
	Blind bool
}

// DefaultDedupWindow is the default of Options.DedupWindow: more than an hour at two inserts per
// second.
const DefaultDedupWindow = 10_000

func (o *Options) check() error {
	var errs []error
	if o.Shape == "" {
		o.Shape = Single
	}
	if o.DedupWindow == 0 {
		o.DedupWindow = DefaultDedupWindow
	}
	if o.Database == "" {
		errs = append(errs, errors.New("database name is empty"))
	}
	switch o.Shape {
	case Single:
		if o.Cluster != "" || o.ReplicatedDatabase {
			errs = append(errs, fmt.Errorf("shape %s has no cluster; use %s or %s", Single, Replicated, Sharded))
		}
	case Replicated, Sharded:
		if o.Cluster == "" {
			errs = append(errs, fmt.Errorf("shape %s needs the name of a cluster", o.Shape))
		}
	default:
		errs = append(errs, fmt.Errorf("shape %q is not one of %s, %s, %s", o.Shape, Single, Replicated, Sharded))
	}
	return errors.Join(errs...)
}

// days returns a retention time in days, or 0 for no limit. A row belongs to the day on which it
// starts, so one more day is needed to store the last row of a day for the whole time.
func days(retention time.Duration) int {
	const day = 24 * time.Hour
	if retention <= 0 {
		return 0
	}
	return int((retention+day-1)/day) + 1
}
