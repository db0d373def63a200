package disk

import (
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
)

// noteLosses finds the files in the quarantine whose spans are missing in answers. It returns the
// names of all files in the quarantine.
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
// log or segment, and its spans would not have expired by now.
func (e *exporter) isLoss(name string) bool {
	if s, ok := directory.ParseQuarantined(name); ok {
		return !e.wouldHaveExpired(s.Last)
	}
	last, ok := e.dir.Lost(name)
	return ok && !e.wouldHaveExpired(last)
}

// wouldHaveExpired reports whether the spans of the log with this epoch are older than the
// retention time. An epoch is about when the spans arrived.
func (e *exporter) wouldHaveExpired(epoch uint64) bool {
	retention := time.Duration(e.config.Retention.Time)
	return retention > 0 && !e.env.Now().Before(time.Unix(0, int64(epoch)).Add(retention+lossMargin))
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
