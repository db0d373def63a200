package disk

import (
	"fmt"
	"path"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
)

// noteLosses finds out of which files in the quarantine spans are missing in answers. It returns
// the names of all files in the quarantine.
func (e *exporter) noteLosses() (all []string, err error) {
	entries, err := e.dir.Quarantined()
	if err != nil {
		return nil, err
	}
	var lost []string
	for _, f := range entries {
		if f.IsDir {
			continue
		}
		all = append(all, f.Name)
		if e.isLoss(f.Name) {
			lost = append(lost, f.Name)
		}
	}
	reason := ""
	if len(lost) > 0 {
		reason = fmt.Sprintf("spans of %d files that were lost or cannot be read are missing: %s", len(lost), shorten(lost))
	}
	e.losses.Store(&reason)
	return all, nil
}

// isLoss reports whether a file in the quarantine is a segment, or a note about the lost spans of a
// log, and its spans would not have expired by now.
func (e *exporter) isLoss(name string) bool {
	last := uint64(0) // epoch: about when its spans arrived
	if s, ok := directory.ParseSegment(path.Join(anyDay, name)); ok {
		last = s.Last
	} else if last, ok = e.dir.LostLog(name); !ok {
		return false
	}
	expires := time.Unix(0, int64(last)).Add(time.Duration(e.config.Retention.Time) + lossMargin)
	return e.config.Retention.Time == 0 || e.env.Now().Before(expires)
}

// lossMargin is for spans that arrived after the epoch of their log.
const lossMargin = time.Hour

// lossReason describes for users which spans are missing in all answers, "" if none are.
func (e *exporter) lossReason() string {
	if reason := e.losses.Load(); reason != nil {
		return *reason
	}
	return ""
}
