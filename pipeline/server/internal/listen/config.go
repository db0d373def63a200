package listen

import "github.com/tracing-backend/tracing/pipeline"

// CheckEndpoint returns an error if the endpoint is empty.
func CheckEndpoint(e pipeline.Endpoint) error {
	if e == "" {
		return pipeline.BadKey("endpoint", "must be set; write host:port, for example localhost:4317")
	}
	return nil
}

// CheckRange returns an error if the value of key is not between lowest and highest, inclusive.
func CheckRange(key string, v, lowest, highest int64) error {
	if v < lowest || v > highest {
		return pipeline.BadKey(key, "must be from %d to %d, not %d", lowest, highest, v)
	}
	return nil
}

// CheckTimeout returns an error if the timeout is not positive.
func CheckTimeout(key string, d pipeline.Duration) error {
	if d <= 0 {
		return pipeline.BadKey(key, "must be above 0, because a stalled client would otherwise hold its connection forever")
	}
	return nil
}
