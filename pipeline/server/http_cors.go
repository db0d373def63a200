package server

import (
	"net/http"

	"github.com/rs/cors"

	"github.com/tracing-backend/tracing/pipeline"
)

// CORSConfig is the block `cors`. Its keys have the same names as in the OpenTelemetry Collector.
type CORSConfig struct {
	AllowedOrigins []string `yaml:"allowed_origins" doc:"Origins of web pages that may send requests, such as https://shop.example.com, https://*.example.com or *."`
	AllowedHeaders []string `yaml:"allowed_headers" doc:"Headers that these pages may send in addition to the standard ones. * allows all headers."`
	MaxAge         int      `yaml:"max_age" doc:"Number of seconds for which browsers may cache the response to a preflight request. 0 uses their default."`
}

// Validate checks that at least one origin is set.
func (c *CORSConfig) Validate() error {
	if len(c.AllowedOrigins) == 0 {
		return pipeline.BadKey("allowed_origins", "must contain at least one origin, for example https://app.example.com")
	}
	if c.MaxAge < 0 {
		return pipeline.BadKey("max_age", "must not be below 0")
	}
	return nil
}

// withCORS responds to preflight requests and adds CORS headers to other responses if the block is
// set. It runs before authentication, because browsers send preflight requests without credentials.
// It also returns a function that reports whether the origin of a request is allowed.
func withCORS(o pipeline.Optional[CORSConfig], next http.Handler) (h http.Handler, allows func(*http.Request) bool) {
	c, on := o.Get()
	if !on {
		return next, none
	}
	policy := cors.New(cors.Options{AllowedOrigins: c.AllowedOrigins, AllowedHeaders: c.AllowedHeaders, MaxAge: c.MaxAge,
		AllowCredentials: true, AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodHead}})
	return policy.Handler(next), policy.OriginAllowed
}
