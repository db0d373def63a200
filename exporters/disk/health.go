package disk

import (
	"errors"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/pipeline"
)

// health says what is wrong with the store: to operators in the status, and to users in query
// results with missing spans.
type health struct {
	*common
	report   func(error)
	segments *segments
	restorer *restorer

	// Used by the maintenance loop, and by Start while it does not run.
	reported string // what was reported last, as text
	troubled bool   // the report was not only about damage
	damage   error  // damaged files, as found by the last check

	losses atomic.Pointer[string] // see lossReason; nil: not known yet
}

// update reports an error and damage when they begin, change or end. While an error lasts, it is
// logged once a minute, with the free disk space and the number of refused requests. Damage was
// logged when it was found.
func (h *health) update(free, refused int64, err error) {
	const degraded = "span store degraded"
	switch {
	case err != nil:
		h.lines.Error(degraded, zap.Error(err), zap.Int64("free-bytes", free), zap.Int64("refused-requests", refused))
	case h.troubled:
		h.lines.End(degraded)
		h.lines.Info("span store recovered")
	}
	h.troubled = err != nil
	text := ""
	if err = errors.Join(err, h.damage); err != nil {
		text = fmt.Sprint(pipeline.IsNotReady(err), err)
	}
	if text != h.reported {
		h.reported = text
		h.report(err)
	}
}

// damageError returns an error while the store has damaged segments, segments whose files were
// deleted and could not be restored, or unreadable files in the quarantine.
func (h *health) damageError() error {
	return errors.Join(h.segments.damageError(), h.restorer.failure(), h.quarantinedFiles())
}

func (h *health) quarantinedFiles() error {
	list, err := h.noteLosses()
	if len(list) == 0 {
		return err
	}
	return fmt.Errorf(`%s holds %d files that could not be read: %s; run "tracing store inspect", and delete them when they are no longer needed`,
		h.dir.QuarantineDir(), len(list), shorten(list))
}

// noteLosses finds the files in the quarantine whose spans are missing in query results. It returns
// the names of all files in the quarantine.
func (h *health) noteLosses() (all []string, err error) {
	entries, err := h.dir.Quarantined()
	if err != nil {
		return nil, err
	}
	var lost []string
	for _, f := range entries {
		if f.IsDir {
			continue
		}
		all = append(all, f.Name)
		if h.isLoss(f.Name) {
			lost = append(lost, f.Name)
		}
	}
	reason := ""
	if len(lost) > 0 {
		reason = fmt.Sprintf("spans of %d files that were lost or cannot be read are missing: %s", len(lost), shorten(lost))
	}
	h.losses.Store(&reason)
	return all, nil
}

// isLoss reports whether a file in the quarantine is a segment, or a note about the lost spans of a
// log or segment, and its spans would not have expired by now.
func (h *health) isLoss(name string) bool {
	if s, ok := directory.ParseQuarantined(name); ok {
		return !h.wouldHaveExpired(s.Last)
	}
	last, ok := h.dir.Lost(name)
	return ok && !h.wouldHaveExpired(last)
}

// lossReason describes for users which spans are missing in all query results. It is "" if none
// are.
func (h *health) lossReason() string {
	if reason := h.losses.Load(); reason != nil {
		return *reason
	}
	return ""
}
