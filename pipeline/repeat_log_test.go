package pipeline_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
)

// lines formats log lines as `time level message fields`.
func lines(logs *observer.ObservedLogs, start time.Time) (out []string) {
	for _, l := range logs.All() {
		out = append(out, fmt.Sprint(l.Time.Sub(start), " ", l.Level, " ", l.Message, " ", l.ContextMap()))
	}
	return out
}

func TestRepeatLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		start := time.Now()
		l := pipeline.NewRepeatLog(pipeline.Settings{Logger: zap.New(core), Env: pipeline.SystemEnv()})
		for i := range 150 { // one line per second
			l.Warn("disk is full", zap.Int("free", i))
			if i == 100 {
				l.Error("another event")
			}
			time.Sleep(time.Second)
		}
		l.End("disk is full")
		time.Sleep(time.Hour)
		l.Info("disk is full", zap.Int("free", 200))
		want := []string{
			"0s warn disk is full map[free:0]",
			"1m0s warn disk is full map[free:59 not-logged:58]",
			"1m40s error another event map[]",
			"2m0s warn disk is full map[free:119 not-logged:59]",
			"1h2m30s info disk is full map[free:200 not-logged:30]",
		}
		got := lines(logs, start)
		if len(got) > 1 { // a line and the end of the interval at the same time have no order
			got[1], got[3] = want[1], want[3]
			for i, at := range []int{1, 3} {
				if m := logs.All()[at].ContextMap(); m["free"].(int64)+1-m["not-logged"].(int64) < 2 || m["free"].(int64) > int64(60*(i+1)) {
					t.Errorf("line %d: %v", at, m)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

func TestReports(t *testing.T) {
	var got []string
	r := pipeline.NewReports(func(err error) {
		got = append(got, fmt.Sprint(err, " ", pipeline.IsNotReady(err)))
	})
	disk, hop := r.Part("disk"), r.Part("hop")
	disk(nil)
	hop(fmt.Errorf("away"))
	disk(pipeline.NotReady(fmt.Errorf("full")))
	hop(nil)
	hop(nil)
	disk(nil)
	want := []string{"away false", "full; away true", "full true", "<nil> false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if pipeline.NotReady(nil) != nil {
		t.Error("NotReady(nil) is not nil")
	}
}
