// Package healthcheck implements the `health_check` extension. It serves health checks, such as
// Kubernetes probes, on its own listener, without the other routes of the `admin` extension.
package healthcheck

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

type config struct {
	server.HTTPConfig
	Path         string                               `yaml:"path" doc:"URL path of the health check."`
	ResponseBody responseBody                         `yaml:"response_body" doc:"Bodies of the responses. If a body is empty, JSON with the state and the uptime is sent."`
	GRPC         pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"Listener for the gRPC health checking protocol."`
}

type responseBody struct {
	Healthy   string `yaml:"healthy" doc:"Body of the 200 response."`
	Unhealthy string `yaml:"unhealthy" doc:"Body of the 503 response."`
}

func defaults() config {
	return config{
		HTTPConfig: server.DefaultHTTPConfig("localhost:13133"),
		Path:       "/",
		GRPC:       pipeline.Absent(server.DefaultGRPCConfig("localhost:13132")),
	}
}

// Validate checks the path.
func (c *config) Validate() error {
	if !strings.HasPrefix(c.Path, "/") {
		return pipeline.BadKey("path", "%q must start with a slash, for example /health", c.Path)
	}
	return nil
}

// Factory returns the factory for the `health_check` extension.
func Factory() pipeline.Factory {
	return pipeline.Extension("health_check", defaults, newExtension).
		Doc("Answers health checks, such as the probes of Kubernetes: 200 while the process runs, 503 while it starts and stops.")
}

type extension struct {
	server.Listeners // provides Start, Stop and Addr
	set              pipeline.Settings
	config           config
}

var (
	_ pipeline.Observer  = (*extension)(nil)
	_ pipeline.Stopper   = (*extension)(nil)
	_ pipeline.Addressed = (*extension)(nil)
)

func newExtension(set pipeline.Settings, c config) (*extension, error) {
	e := &extension{Listeners: server.Listeners{}, set: set, config: c}
	listener, err := server.NewHTTP(set, "http", c.HTTPConfig, http.HandlerFunc(e.serve))
	if err != nil {
		return nil, err
	}
	e.Listeners["http"] = listener
	if cfg, on := c.GRPC.Get(); on {
		grpc, err := server.NewGRPC(set, "grpc", cfg)
		if err != nil {
			return nil, err
		}
		e.Listeners["grpc"] = grpc
	}
	return e, nil
}

// ObservesProcess implements pipeline.Observer: checks are served while the process starts and
// stops.
func (e *extension) ObservesProcess() {}

// serve answers a health check.
func (e *extension) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != e.config.Path && r.URL.Path != e.config.Path+"/" {
		http.Error(w, "no health check here; it is at "+e.config.Path, http.StatusNotFound)
		return
	}
	code, answer := e.set.Process.Health().Answer(e.set.Env.Now())
	body := e.config.ResponseBody.Healthy
	if code != http.StatusOK {
		body = e.config.ResponseBody.Unhealthy
	}
	if body != "" {
		w.WriteHeader(code)
		w.Write([]byte(body)) //nolint:errcheck // the client has disconnected
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client has disconnected
}
