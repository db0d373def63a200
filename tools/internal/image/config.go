package image

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Facts of the image. The stage `base` of deploy/docker/Dockerfile repeats them; a test compares the
// images of both.
const (
	user     = 10001 // also the group
	program  = "/usr/bin/tracing"
	dataDir  = "/data"
	preset   = "all-in-one"
	portable = "linux"
)

// ports are the ports of all presets.
var ports = []string{
	"4317/tcp", "4318/tcp", "14250/tcp", "14268/tcp", "9411/tcp", // OTLP, native, Zipkin
	"5775/udp", "6831/udp", "6832/udp", "5778/tcp", // datagrams, sampling
	"16685/tcp", "16686/tcp", "17271/tcp", // query, remote storage
	"14269/tcp", "14271/tcp", "16687/tcp", // admin of collector, agent, query
}

// config returns the configuration of an image.
func config(arch, version string) *v1.ConfigFile {
	exposed := make(map[string]struct{})
	for _, p := range ports {
		exposed[p] = struct{}{}
	}
	return &v1.ConfigFile{
		OS:           portable,
		Architecture: arch,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:         "10001:10001",
			WorkingDir:   dataDir,
			Volumes:      map[string]struct{}{dataDir: {}},
			ExposedPorts: exposed,
			Env:          []string{"PATH=/usr/bin", "TRACING_DATA_DIR=" + dataDir, "TRACING_LISTEN_HOST=0.0.0.0"},
			Entrypoint:   []string{program},
			Cmd:          []string{preset},
			Healthcheck: &v1.HealthConfig{
				Test:     []string{"CMD", program, "healthcheck", "--pid=1"},
				Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: 30 * time.Second, Retries: 3,
			},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "tracing",
				"org.opencontainers.image.description": "Distributed tracing backend",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     version,
			},
		},
	}
}
