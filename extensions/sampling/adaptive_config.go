package sampling

import (
	"errors"
	"time"

	"github.com/tracing-backend/tracing/extensions/sampling/internal/adaptive"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// AdaptiveConfig holds the keys of `adaptive`.
type AdaptiveConfig struct {
	Storage         pipeline.Ref[sampling.Store] `yaml:"storage" ref:"a store that supports adaptive sampling" doc:"Store for observed trace counts and calculated probabilities. Collectors that share it add up their counts."`
	Target          float64                      `yaml:"target_samples_per_second" doc:"Target number of sampled traces per second for each root operation, across all instances."`
	Tolerance       float64                      `yaml:"delta_tolerance" doc:"Maximum deviation of a steady rate from the target, as a fraction of the target. Larger deviations change the probability."`
	Buckets         int                          `yaml:"calculation_buckets" doc:"Minimum number of intervals in a calculation. More are used while the rate of new traces is steady."`
	Interval        pipeline.Duration            `yaml:"calculation_interval" doc:"Time between calculations, and length of the intervals in which traces are counted. All collectors must use the same value."`
	History         int                          `yaml:"aggregation_buckets" doc:"Number of intervals whose counts are kept. Operations without traces in them are forgotten."`
	Delay           pipeline.Duration            `yaml:"calculation_delay" doc:"Minimum age of an interval before it is used, so that all collectors have stored their counts."`
	Initial         float64                      `yaml:"initial_sampling_probability" doc:"Sampling probability of operations that have not been observed yet."`
	Min             float64                      `yaml:"min_sampling_probability" doc:"Minimum sampling probability."`
	LowerBound      float64                      `yaml:"min_samples_per_second" doc:"Minimum number of traces per second that each process samples for each operation, regardless of the probability."`
	LeaderRefresh   pipeline.Duration            `yaml:"leader_lease_refresh_interval" doc:"Interval at which the leader renews its lease. After three missed renewals another collector takes over."`
	FollowerRefresh pipeline.Duration            `yaml:"follower_lease_refresh_interval" doc:"Interval at which the other collectors check the lease. They also check it at each calculation."`
	MaxOperations   int                          `yaml:"max_operations" doc:"Maximum number of operations whose traces are counted. Further ones have the initial probability."`
	Remembered      int                          `yaml:"remembered_calculations" doc:"Number of calculations that the page /sampling shows, with 8 bytes of memory for each operation. 0 disables this."`
}

func defaultAdaptive() AdaptiveConfig {
	return AdaptiveConfig{Target: 1, Tolerance: 0.3, Buckets: 1, Interval: pipeline.Duration(time.Minute), History: 10,
		Delay: pipeline.Duration(2 * time.Minute), Initial: 0.001, Min: 1e-5, LowerBound: 1. / 60,
		LeaderRefresh: pipeline.Duration(5 * time.Second), FollowerRefresh: pipeline.Duration(time.Minute), MaxOperations: 10_000, Remembered: 60}
}

// Limits of configuration values.
const (
	minInterval   = time.Second
	maxInterval   = 24 * time.Hour
	maxBuckets    = 100
	maxOperations = 100_000
	maxRemembers  = 1440
)

// Validate reports invalid values.
func (c *AdaptiveConfig) Validate() error {
	var errs []error
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, pipeline.BadKey(key, format, args...))
		}
	}
	duration := func(d pipeline.Duration, minimum time.Duration, key string) {
		check(d.Std() >= minimum && d.Std() <= maxInterval, key, "must be from %s to %s, not %s", minimum, maxInterval, d)
	}
	check(c.Storage.IsSet(), "storage", "must name a store, for example storage: disk")
	check(c.Target > 0 && c.Target <= 1e9, "target_samples_per_second", "must be above 0 and at most 1e9, not %v", c.Target)
	check(c.Tolerance > 0 && c.Tolerance < 1, "delta_tolerance", "must be between 0 and 1, not %v", c.Tolerance)
	check(c.History >= 1 && c.History <= maxBuckets, "aggregation_buckets", "must be from 1 to %d, not %d", maxBuckets, c.History)
	check(c.Buckets >= 1 && c.Buckets <= c.History, "calculation_buckets",
		"must be from 1 to aggregation_buckets, which is %d, not %d", c.History, c.Buckets)
	duration(c.Interval, minInterval, "calculation_interval")
	duration(c.Delay, 0, "calculation_delay")
	check(c.Initial > 0 && c.Initial <= 1, "initial_sampling_probability", "must be above 0 and at most 1, not %v", c.Initial)
	check(c.Min > 0 && c.Min <= 1, "min_sampling_probability", "must be above 0 and at most 1, not %v", c.Min)
	check(c.LowerBound >= 0 && c.LowerBound <= 1e6, "min_samples_per_second", "must be from 0 to 1e6, not %v", c.LowerBound)
	duration(c.LeaderRefresh, 10*time.Millisecond, "leader_lease_refresh_interval")
	duration(c.FollowerRefresh, 10*time.Millisecond, "follower_lease_refresh_interval")
	check(c.MaxOperations >= 1 && c.MaxOperations <= maxOperations, "max_operations",
		"must be from 1 to %d, not %d", maxOperations, c.MaxOperations)
	check(c.Remembered >= 0 && c.Remembered <= maxRemembers, "remembered_calculations", "must be from 0 to %d, not %d", maxRemembers,
		c.Remembered)
	return errors.Join(errs...)
}

func (c *AdaptiveConfig) options() adaptive.Options {
	return adaptive.Options{Target: c.Target, Tolerance: c.Tolerance, Initial: c.Initial, Min: c.Min,
		MinBuckets: c.Buckets, MaxOperations: c.MaxOperations}
}
