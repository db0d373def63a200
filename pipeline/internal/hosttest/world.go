package hosttest

import (
	"context"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// World is shared by the fake components of a test. It records their calls and controls their
// behavior.
type World struct {
	mu       sync.Mutex
	Events   []string                                 // calls in order: "build sink", "start sink", "stop sink"
	Fail     map[string]error                         // errors of calls, by event
	Panics   map[string]bool                          // calls that panic, by event
	OnEvent  func(event string)                       // called for each event
	OnStop   func(ctx context.Context)                // called for each Stop
	Ask      *AskConfig                               // configuration of the latest ask
	Settings map[string]pipeline.Settings             // by id
	Dirs     []string                                 // Settings.Dir in the order of builds
	Accept   func(id string, b *otlpdata.Batch) error // Consume of exporters; nil accepts everything
	Source   map[string]pipeline.Consumer             // next of receivers, by id
}

// NewWorld returns a World in which every call succeeds.
func NewWorld() *World {
	return &World{Fail: map[string]error{}, Panics: map[string]bool{}, Source: map[string]pipeline.Consumer{},
		Settings: map[string]pipeline.Settings{}}
}

// record records an event. It returns its error, or panics.
func (w *World) record(event string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Events = append(w.Events, event)
	if w.OnEvent != nil {
		w.OnEvent(event)
	}
	if w.Panics[event] {
		panic(event)
	}
	return w.Fail[event]
}

// RecordBuild records that a component was built. suffix is added to the event.
func (w *World) RecordBuild(s pipeline.Settings, suffix string) error {
	w.Settings[s.ID.String()] = s
	w.Dirs = append(w.Dirs, s.Dir)
	return w.record("build " + s.ID.String() + suffix)
}

// Load loads a configuration with all fakes. The environment has a variable SET.
func (w *World) Load(yaml string, overrides ...app.Override) (*app.Config, error) {
	return w.LoadWith(w.Factories(), yaml, overrides...)
}

// LoadWith is like Load with other factories.
func (w *World) LoadWith(factories []pipeline.Factory, yaml string, overrides ...app.Override) (*app.Config, error) {
	return app.Load(app.LoadOptions{Factories: factories, Files: []string{"c.yaml"}, Overrides: overrides,
		LookupEnv: func(n string) (string, bool) { return "from-env", n == "SET" },
		ReadFile:  func(string) ([]byte, error) { return []byte(yaml), nil }})
}
