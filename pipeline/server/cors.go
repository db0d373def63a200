package server

import (
	"net/http"

	"github.com/rs/cors"

	"github.com/tracing-backend/tracing/pipeline"
)

// CORSConfig are the keys below `cors`, named as in the OpenTelemetry Collector.
type CORSConfig struct {
	AllowedOrigins []string `yaml:"allowed_origins" doc:"Origins that pages may send from; * stands for any part, as in https://*.example.com."`
	AllowedHeaders []string `yaml:"allowed_headers" doc:"Headers that pages may send besides the usual ones; * allows all."`
	MaxAge         int      `yaml:"max_age" doc:"How many seconds browsers may remember the answer; 0 leaves it to them."`
}

// Validate checks that there is an origin.
func (c *CORSConfig) Validate() error {
	if len(c.AllowedOrigins) == 0 {
		return pipeline.BadKey("allowed_origins", "must list at least one origin, for example https://app.example.com")
	}
	if c.MaxAge < 0 {
		return pipeline.BadKey("max_age", "must not be below 0")
	}
	return nil
}

// withCORS answers preflight requests, and marks the answers to others, where the block is there. It stands in front of authentication:
// browsers send preflights without credentials.
func withCORS(o pipeline.Optional[CORSConfig], next http.Handler) http.Handler {
	c, on := o.Get()
	if !on {
		return next
	}
	return cors.New(cors.Options{AllowedOrigins: c.AllowedOrigins, AllowedHeaders: c.AllowedHeaders, MaxAge: c.MaxAge,
		AllowCredentials: true, AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodHead}}).Handler(next)
}
