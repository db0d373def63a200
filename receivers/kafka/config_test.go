package kafka

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/pipeline"
)

func TestValidate(t *testing.T) {
	c := defaults()
	if err := c.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for name, f := range map[string]struct {
		change func(*config)
		want   string
	}{
		"topic":             {func(c *config) { c.Topic = "a b" }, `"a b" is not a topic`},
		"encoding":          {func(c *config) { c.Encoding = "avro" }, `unknown encoding "avro"; use one of jaeger_json`},
		"group":             {func(c *config) { c.GroupID = "" }, "must be set; members with the same group share the partitions"},
		"offset":            {func(c *config) { c.InitialOffset = "oldest" }, `must be earliest or latest, not "oldest"`},
		"session":           {func(c *config) { c.SessionTimeout = c.HeartbeatInterval }, "must be at least twice heartbeat_interval"},
		"rebalance":         {func(c *config) { c.RebalanceTimeout = 3e10 }, "must be more than revoke_timeout (30s) and autocommit"},
		"fetch size":        {func(c *config) { c.MaxFetchSize = 1 << 30 }, "must be from 1 byte to 1023MiB"},
		"batch of records":  {func(c *config) { c.MaxDecompressedBatchSize = 1 << 32 }, "must be from 1 byte to"},
		"revoke":            {func(c *config) { c.RevokeTimeout = 0 }, "must be above 0"},
		"long session":      {func(c *config) { c.SessionTimeout = 1 << 62 }, "must be from 100ms to"},
		"long rebalance":    {func(c *config) { c.RebalanceTimeout = 1 << 62 }, "must be from 100ms to"},
		"min fetch size":    {func(c *config) { c.MinFetchSize = 2 << 20 }, "must be at most max_fetch_size (1MiB)"},
		"wait":              {func(c *config) { c.MaxFetchWait = 0 }, "must be from 10ms to 1m0s, not 0s"},
		"queue":             {func(c *config) { c.MaxQueuedSize = 0 }, "must be above 0"},
		"concurrency":       {func(c *config) { c.MaxConcurrent = 0 }, "must be from 1 to 10000, not 0"},
		"fetches":           {func(c *config) { c.MaxConcurrentFetches = -1 }, "must be from 1 to 1000, not -1"},
		"endless letters":   {func(c *config) { c.DeadLetter.Topic = c.Topic }, "must not be the topic that is consumed"},
		"letter topic":      {func(c *config) { c.DeadLetter.Topic = "/" }, `"/" is not a topic`},
		"letter size":       {func(c *config) { c.DeadLetter.MaxSize = 0 }, "must be above 0"},
		"letter timeout":    {func(c *config) { c.DeadLetter.Timeout = 0 }, "must be above 0"},
		"commit interval":   {func(c *config) { c.Autocommit.Interval = 0 }, "must be above 0"},
		"commit timeout":    {func(c *config) { c.Autocommit.Timeout = 0 }, "must be above 0"},
		"backoff":           {func(c *config) { c.ErrorBackoff.InitialInterval = 0 }, "must be above 0"},
		"decreasing delays": {func(c *config) { c.ErrorBackoff.MaxInterval = 1 }, "must be at least initial_interval (500ms)"},
		"batch size":        {func(c *config) { c.Batch.MaxSize = 0 }, "must be above 0"},
		"batch spans":       {func(c *config) { c.Batch.MaxSpans = 0 }, "must be above 0"},
	} {
		c := defaults()
		f.change(&c)
		var texts []string
		// The framework validates blocks by themselves.
		for _, v := range []interface{ Validate() error }{&c, &c.Batch, &c.Autocommit, &c.ErrorBackoff, &c.DeadLetter} {
			if err := v.Validate(); err != nil {
				texts = append(texts, err.Error())
			}
		}
		if all := strings.Join(texts, "\n"); !strings.Contains(all, f.want) {
			t.Errorf("%s: %q, want %q", name, all, f.want)
		}
	}
}

// The client library accepts the extreme values of a valid configuration.
func TestExtremeValues(t *testing.T) {
	for name, change := range map[string]func(*config){
		"small": func(c *config) {
			c.MinFetchSize, c.MaxFetchSize, c.MaxPartitionFetchSize, c.MaxDecompressedBatchSize = 1, 1, 1, 1
			c.MaxFetchWait, c.MaxConcurrentFetches = pipeline.Duration(minFetchWait), 1
			c.SessionTimeout, c.HeartbeatInterval = pipeline.Duration(minGroupTimeout), 1
			c.RebalanceTimeout, c.RevokeTimeout, c.Autocommit.Timeout = pipeline.Duration(minGroupTimeout), 1, 1
		},
		"large": func(c *config) {
			c.MinFetchSize, c.MaxFetchSize, c.MaxPartitionFetchSize = maxFetchSize, maxFetchSize, maxFetchSize
			c.MaxDecompressedBatchSize = math.MaxInt32
			c.MaxFetchWait, c.MaxConcurrentFetches = pipeline.Duration(time.Minute), 1000
			c.SessionTimeout, c.RebalanceTimeout = pipeline.Duration(maxWireTime), pipeline.Duration(maxWireTime)
			c.HeartbeatInterval = c.SessionTimeout / 2
		},
	} {
		c := defaults()
		change(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r := &receiver{config: c}
		if err := kgo.ValidateOpts(r.options(t.Context())...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
