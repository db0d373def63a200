package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tracing-backend/tracing/internal/demo"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

const (
	ownPreset = "all-in-one"
	// stopTimeout is the maximum time for stopping the preset.
	stopTimeout = 30 * time.Second
)

// sendToOwn starts the preset all-in-one, sends traces to it until the run ends, and stops it.
func (t tool) sendToOwn(ctx context.Context, f *flags, o demo.Options, in commands.Invocation) (err error) {
	folder := f.dataDir
	if folder == "" {
		if folder, err = os.MkdirTemp("", "tracing-demo-"); err != nil {
			return fmt.Errorf("temporary folder: %w; set --data-dir", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	a, err := t.start(ctx, append(f.settings, "service::data_dir="+folder), in)
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, a.Stop(stop))
	}()
	fmt.Fprintf(in.Stdout, "started %s: web UI on %s, files in %s\n", ownPreset, ownURL(a, "query"), folder)
	o.OTLP, o.Direct = ownURL(a, "otlp"), true
	return send(ctx, o, in)
}

// start starts the preset with settings as in --set.
func (t tool) start(ctx context.Context, settings []string, in commands.Invocation) (*app.App, error) {
	load := app.LoadOptions{Factories: t.components(), Presets: t.presets(), Preset: ownPreset}
	for _, s := range append([]string{"service::telemetry::logs::level=warn"}, settings...) {
		v, err := app.ParseSet(s)
		if err != nil {
			return nil, commands.BadUsage("--set: %w", err)
		}
		load.Overrides = append(load.Overrides, v)
	}
	cfg, err := app.Load(load)
	if err != nil {
		return nil, commands.BadUsage("%w", err)
	}
	a, err := app.New(cfg, app.Options{Log: in.Stderr})
	if err != nil {
		return nil, err
	}
	return a, a.Start(context.WithoutCancel(ctx))
}

// ownURL returns where this process reaches the HTTP listener of a component.
func ownURL(a *app.App, component string) string {
	return commands.LocalURL(a.Addr(pipeline.ID{Type: component}, "http"))
}
