package password

import (
	"errors"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// Config is the block `password_checks`.
type Config struct {
	MaxConcurrent       int               `yaml:"max_concurrent" doc:"Maximum number of concurrent comparisons of a password with a hash, each about 60 ms of CPU time with bcrypt cost 10. Passwords that were verified before need none."`
	MaxWaiting          int               `yaml:"max_waiting" doc:"Maximum number of comparisons that run or wait. Further requests get 429."`
	MaxWaitingPerClient int               `yaml:"max_waiting_per_client" doc:"Maximum number of comparisons of one client address that run or wait. Further requests get 429."`
	WaitTimeout         pipeline.Duration `yaml:"wait_timeout" doc:"Maximum time that a request waits for its comparison. Then it gets 429."`
	MaxCost             int               `yaml:"max_cost" doc:"Maximum bcrypt cost of a hash in htpasswd_file. Each step doubles the time of a comparison."`
	AllowedFailures     int               `yaml:"allowed_failures" doc:"Number of wrong passwords before a client address must wait. A correct password resets the count."`
	MinDelay            pipeline.Duration `yaml:"min_delay" doc:"Delay of a client address after the first wrong password beyond allowed_failures, doubled by each further one. Until it ends, requests get 429 unless their password was verified before. 0 disables the delay."`
	MaxDelay            pipeline.Duration `yaml:"max_delay" doc:"Maximum delay of a client address. After three times this period without a wrong password, its failures are forgotten."`
	MaxClients          int               `yaml:"max_clients" doc:"Maximum number of client addresses whose wrong passwords are counted. The least recent one is forgotten first."`
}

// DefaultConfig returns limits for an open network: password guessing uses at most one CPU.
func DefaultConfig() Config {
	return Config{
		MaxConcurrent:       1,
		MaxWaiting:          64,
		MaxWaitingPerClient: 4,
		WaitTimeout:         pipeline.Duration(5 * time.Second),
		MaxCost:             17,
		AllowedFailures:     5,
		MinDelay:            pipeline.Duration(time.Second),
		MaxDelay:            pipeline.Duration(time.Minute),
		MaxClients:          10_000,
	}
}

// Validate reports values that would disable a limit or refuse every password.
func (c *Config) Validate() error {
	var delay error
	if c.MaxDelay < c.MinDelay {
		delay = pipeline.BadKey("max_delay", "must not be below min_delay (%v)", c.MinDelay)
	}
	return errors.Join(
		listen.CheckRange("max_concurrent", int64(c.MaxConcurrent), 1, 1024),
		listen.CheckRange("max_waiting", int64(c.MaxWaiting), 1, 65536),
		listen.CheckRange("max_waiting_per_client", int64(c.MaxWaitingPerClient), 1, 65536),
		listen.CheckTimeout("wait_timeout", c.WaitTimeout),
		listen.CheckRange("max_cost", int64(c.MaxCost), int64(bcrypt.MinCost), int64(bcrypt.MaxCost)),
		listen.CheckRange("allowed_failures", int64(c.AllowedFailures), 0, 1_000_000),
		listen.CheckRange("max_clients", int64(c.MaxClients), 1, 10_000_000),
		delay,
	)
}
