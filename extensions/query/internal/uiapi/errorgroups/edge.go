package errorgroups

import (
	"math"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxEdges is the maximum number of different parts with a start or end of a rise that are
// recounted.
const maxEdges = 6

// refine locates more precisely when rises begin and end, which are known only to a part of the
// window. It divides the parts around them further and recounts.
func (c *counter) refine(list []*group, length uint64) error {
	if c.store == nil {
		return nil
	}
	around := make(map[uint64]*counted)
	for _, g := range list {
		if g.trend.kind != growing {
			continue
		}
		for _, edge := range []*uint64{&g.trend.since, &g.trend.until} {
			if *edge == 0 {
				continue
			}
			near, known := around[*edge]
			if !known {
				if len(around) == maxEdges {
					return nil
				}
				var err error
				from := time.Unix(0, int64(*edge-length))
				if near, err = c.countGroups(core.Window{From: from, To: from.Add(2 * time.Duration(length))}); err != nil {
					return err
				}
				around[*edge] = near
			}
			if fine := near.groups[g.id]; fine != nil && near.Complete {
				*edge = near.edge(&fine.spans, &g.trend, length, edge == &g.trend.until)
			}
		}
	}
	return nil
}

// edge returns the most likely time at which a group's rise begins or ends.
func (c *counted) edge(spans *tracestore.Group, t *trend, length uint64, ends bool) uint64 {
	share := float64(c.parts.Length) / float64(length)
	each, width := math.Log(t.risen/t.otherwise), (t.risen-t.otherwise)*share
	// sum is the log-likelihood ratio that the parts before i belong to the rise.
	sum, best, at := 0.0, math.Inf(1), 0
	for i := range c.parts.N + 1 {
		if ends && -sum < best || !ends && sum < best {
			best, at = sum, i
			if ends {
				best = -sum
			}
		}
		if i < len(spans.Parts) {
			sum += float64(spans.Parts[i])*each - width
		}
	}
	return c.start(at)
}
