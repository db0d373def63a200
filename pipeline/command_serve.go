package pipeline

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
)

// serve runs the program until ctx ends.
func (c *command) serve(ctx context.Context) int {
	files := newFileWatch(c.load.ReadFile)
	c.load.ReadFile = files.read
	app, code := c.prepare()
	if app == nil {
		return code
	}
	floor, release := app.tuneGC()
	defer release()
	app.limitMemory(floor)
	defer app.log.Sync() //nolint:errcheck // standard error cannot always be synced
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	if err := app.Start(ctx); err != nil {
		app.log.Error("cannot start", zap.Error(err))
		return exitFailed
	}
	broken := c.reloads(ctx, app, files, hangup, floor)
	stop, cancel := app.stopContext(ctx)
	defer cancel()
	config, _ := app.current()
	app.log.Info("stopping", zap.Stringer("at-most", config.service.StopTimeout))
	if err := errors.Join(app.Stop(stop), broken); err != nil {
		app.log.Error("did not stop cleanly", zap.Error(err))
		return exitFailed
	}
	return exitOK
}

// reloads loads the configuration again when it is asked to, or when a file has changed, until ctx ends or nothing is left to run.
func (c *command) reloads(ctx context.Context, app *App, files *fileWatch, hangup <-chan os.Signal, floor int64) (broken error) {
	for {
		changed, end := files.watch(app)
		select {
		case <-ctx.Done():
			end()
			return nil
		case <-hangup:
		case <-changed:
		}
		end()
		files.forget()
		err := app.Reload(ctx, func() (*Config, error) { return Load(c.load) })
		if errors.Is(err, errBroken) {
			return err
		}
		app.limitMemory(floor)
	}
}

// limitMemory sets the soft limit that the configuration implies, and says so when it is another one.
func (a *App) limitMemory(floor int64) {
	limit := a.applyMemoryLimit(floor)
	if a.softLimit.Swap(limit) != limit {
		a.log.Info("soft memory limit", zap.Stringer("limit", ByteSize(limit)))
	}
}
