package clickhouse

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline"
)

var _ pipeline.DurabilityReporter = (*exporter)(nil)

// Durability reports that acknowledged spans are on the disks of servers, and whether these have
// synced them.
func (e *exporter) Durability() pipeline.Durability {
	if e.cfg.Fsync {
		return pipeline.DurabilityStored
	}
	return pipeline.DurabilityWritten
}

// durabilityText describes for the log where acknowledged spans are.
func (e *exporter) durabilityText() string {
	text := "on one server"
	switch n, majority := e.db.Quorum(); {
	case e.cfg.Cluster.Name == "": // which has no replicas
	case majority:
		text = "on the majority of replicas"
	case n > 1:
		text = "on " + strconv.Itoa(n) + " replicas"
	default:
		text = "on one replica, copied to the others later"
	}
	if e.cfg.Fsync {
		return text + ", synced to disk"
	}
	return text + ", synced to disk later"
}

// countReplicas tells the connection how many replicas the shards of the cluster have, which the
// quorum of inserts depends on.
func (e *exporter) countReplicas(ctx context.Context) error {
	if e.cfg.Cluster.Name == "" {
		return nil
	}
	n, err := e.number(ctx, "SELECT toUInt64(min(replicas)) FROM (SELECT shard_num, count() AS replicas FROM system.clusters WHERE cluster = "+
		where.Text(e.cfg.Cluster.Name)+" GROUP BY shard_num)")
	if err != nil {
		return fmt.Errorf("counting replicas: %w", err)
	}
	e.db.SetReplicas(int(n))
	return nil
}
