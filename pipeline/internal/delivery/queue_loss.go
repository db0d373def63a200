package delivery

import (
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/storage/spool"
)

// recordLoss counts and logs batches that were lost to damage, or that could be read after an
// earlier loss. The spool calls it when it is opened and by one call of take at a time.
func (q *diskQueue) recordLoss(l spool.Loss) {
	if l.Gone != (spool.State{}) {
		q.capacity.release(q.loadOfState(l.Gone))
		q.countLost(l.Gone.Weight)
	}
	log := q.log.With(zap.String("log", logName(l.Epoch)))
	if l.Gone.Items < 0 || l.Recovered > 0 {
		q.lost.Store(q.lost.Load() - min(q.lost.Load(), l.Recovered))
		log.Warn("read a sending queue file that could not be read before", zap.Int64("batches", max(-l.Gone.Items, 0)),
			zap.Uint64("no_longer_lost", l.Recovered))
	}
	if l.Items == 0 {
		return
	}
	q.lost.Add(l.Items)
	q.lostBatches.Add(float64(l.Items))
	log = log.With(zap.Uint64("up_to_batches", l.Items))
	if errors.Is(l.Err, spool.ErrGone) {
		log.Error("sending queue file is gone; batches that were not sent are lost", zap.String("folder", q.dir))
		return
	}
	log.Error("sending queue file is damaged; batches may be lost; the file is moved when its other batches are sent",
		zap.String("to", q.damagedFiles()), zap.Error(causeOf(&l)))
}

// logUnsynced logs the end of a file that looks as if its write was interrupted.
func (q *diskQueue) logUnsynced(epoch, records uint64) {
	q.log.Warn("sending queue ends with records that cannot be read; they were not acknowledged, unless the disk has damaged them",
		zap.String("log", logName(epoch)), zap.Uint64("records", records))
}

// logListLost logs that the list of files cannot be read.
func (q *diskQueue) logListLost(err error) {
	q.log.Error("list of the sending queue's files cannot be read; cannot tell whether files are missing; it will be rewritten",
		zap.Error(err))
}

// logName returns the first part of the name of a file.
func logName(epoch uint64) string { return fmt.Sprintf("%016x", epoch) }

// causeOf describes a loss.
func causeOf(l *spool.Loss) error {
	if l.Err != nil {
		return l.Err
	}
	var causes []string
	if n := l.Report.Lost; n > 0 {
		causes = append(causes, fmt.Sprintf("%d records are missing at %d places in the file; they may be batches that were sent before",
			n, len(l.Report.Damage)))
	}
	if l.Report.Truncated {
		causes = append(causes, "the end of the file is missing, and with it an unknown number of batches")
	}
	if l.Report.Doubtful {
		causes = append(causes, "the last record cannot be read and may have been acknowledged")
	}
	for _, d := range l.Report.Damage {
		if d.Err != nil {
			causes = append(causes, fmt.Sprintf("the disk cannot read a part of the file: %v", d.Err))
			break
		}
	}
	return errors.New(strings.Join(causes, "; "))
}
