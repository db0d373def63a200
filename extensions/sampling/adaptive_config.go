package sampling

import (
	"errors"
	"time"

	"github.com/tracing-backend/tracing/extensions/sampling/internal/adaptive"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// AdaptiveConfig are the keys below `adaptive`.
type AdaptiveConfig struct {
	Storage         pipeline.Ref[sampling.Store] `yaml:"storage" ref:"a store that can keep what adaptive sampling learns" doc:"Store that keeps what collectors saw and the probabilities that came of it; collectors that share it calculate together."`
	Target          float64                      `yaml:"target_samples_per_second" doc:"Traces per second that are wanted of each operation with which traces begin, of all its processes together."`
	Tolerance       float64                      `yaml:"delta_tolerance" doc:"Share of the target by which a steady rate may differ from it before the probability is changed."`
	Buckets         int                          `yaml:"calculation_buckets" doc:"Least number of intervals that a calculation rests on; it takes more as long as traces begin at one rate."`
	Interval        pipeline.Duration            `yaml:"calculation_interval" doc:"Time between two calculations, and length of the intervals in which traces are counted; all collectors must have the same."`
	Keep            int                          `yaml:"aggregation_buckets" doc:"Intervals that are kept; an operation that is not seen for as long is forgotten."`
	Delay           pipeline.Duration            `yaml:"calculation_delay" doc:"How old an interval must be to be calculated with, so that all collectors have stored what they saw."`
	Initial         float64                      `yaml:"initial_sampling_probability" doc:"Probability of operations that are not known yet."`
	Min             float64                      `yaml:"min_sampling_probability" doc:"Least probability."`
	LowerBound      float64                      `yaml:"min_samples_per_second" doc:"Traces per second that each process samples of each operation in any case."`
	LeaderRefresh   pipeline.Duration            `yaml:"leader_lease_refresh_interval" doc:"How often the collector that calculates says that it lives; after three times as long without, another one takes its place."`
	FollowerRefresh pipeline.Duration            `yaml:"follower_lease_refresh_interval" doc:"How often other collectors look whether it lives, besides at each calculation."`
	MaxOperations   int                          `yaml:"max_operations" doc:"Most operations that are counted, of all services together; others have the initial probability."`
}

func defaultAdaptive() AdaptiveConfig {
	return AdaptiveConfig{Target: 1, Tolerance: 0.3, Buckets: 1, Interval: pipeline.Duration(time.Minute), Keep: 10,
		Delay: pipeline.Duration(2 * time.Minute), Initial: 0.001, Min: 1e-5, LowerBound: 1. / 60,
		LeaderRefresh: pipeline.Duration(5 * time.Second), FollowerRefresh: pipeline.Duration(time.Minute), MaxOperations: 10_000}
}

// Bounds of what can be configured.
const (
	leastInterval  = time.Second
	mostInterval   = 24 * time.Hour
	mostBuckets    = 100
	mostOperations = 100_000
)

// Validate reports values that cannot work.
func (c *AdaptiveConfig) Validate() error {
	var errs []error
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, pipeline.BadKey(key, format, args...))
		}
	}
	duration := func(d pipeline.Duration, least time.Duration, key string) {
		check(d.Std() >= least && d.Std() <= mostInterval, key, "must be from %s to %s, not %s", least, mostInterval, d)
	}
	check(c.Storage.IsSet(), "storage", "must name a store, for example storage: disk")
	check(c.Target > 0 && c.Target <= 1e9, "target_samples_per_second", "must be above 0, not %v", c.Target)
	check(c.Tolerance > 0 && c.Tolerance < 1, "delta_tolerance", "must be between 0 and 1, not %v", c.Tolerance)
	check(c.Keep >= 1 && c.Keep <= mostBuckets, "aggregation_buckets", "must be from 1 to %d, not %d", mostBuckets, c.Keep)
	check(c.Buckets >= 1 && c.Buckets <= c.Keep, "calculation_buckets",
		"must be from 1 to aggregation_buckets, which is %d, not %d", c.Keep, c.Buckets)
	duration(c.Interval, leastInterval, "calculation_interval")
	duration(c.Delay, 0, "calculation_delay")
	check(c.Initial > 0 && c.Initial <= 1, "initial_sampling_probability", "must be a probability above 0, not %v", c.Initial)
	check(c.Min > 0 && c.Min <= 1, "min_sampling_probability", "must be a probability above 0, not %v", c.Min)
	check(c.LowerBound >= 0 && c.LowerBound <= 1e6, "min_samples_per_second", "must not be negative, not %v", c.LowerBound)
	duration(c.LeaderRefresh, 10*time.Millisecond, "leader_lease_refresh_interval")
	duration(c.FollowerRefresh, 10*time.Millisecond, "follower_lease_refresh_interval")
	check(c.MaxOperations >= 1 && c.MaxOperations <= mostOperations, "max_operations",
		"must be from 1 to %d, not %d", mostOperations, c.MaxOperations)
	return errors.Join(errs...)
}

func (c *AdaptiveConfig) options() adaptive.Options {
	return adaptive.Options{Target: c.Target, Tolerance: c.Tolerance, Initial: c.Initial, Min: c.Min,
		Buckets: c.Buckets, Most: c.MaxOperations}
}
