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
		for i := range 200 {
			l.Warn("disk is full", zap.Int("free", i))
			if i == 100 {
				l.Error("another event")
			}
			time.Sleep(700 * time.Millisecond)
		}
		l.End("disk is full")
		time.Sleep(time.Hour)
		l.Info("disk is full", zap.Int("free", 200))
		l.Info("disk is full", zap.Int("free", 201))
		l.Close()
		time.Sleep(time.Hour)
		want := []string{
			"0s warn disk is full map[free:0]",
			"1m0s warn disk is full map[free:85 not-logged:84]",
			"1m10s error another event map[]",
			"2m0s warn disk is full map[free:171 not-logged:85]",
			"1h2m20s info disk is full map[free:200 not-logged:28]",
		}
		got := lines(logs, start)
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
