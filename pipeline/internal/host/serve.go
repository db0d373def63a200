package host

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// Serve starts the app, reloads the configuration on SIGHUP and when a file has changed, and stops
// the app when ctx ends or a failed reload leaves it incomplete. It logs errors before it returns
// them.
func (a *App) Serve(ctx context.Context, files *config.Watcher, load func() (*config.Config, error)) error {
	ballast, release := a.tuneGC()
	defer release()
	a.limitMemory(ballast)
	defer a.log.Sync() //nolint:errcheck // standard error cannot always be synced
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	if err := a.Start(ctx); err != nil {
		a.log.Error("cannot start", zap.Error(err))
		return err
	}
	broken := a.reloads(ctx, files, load, hangup, ballast)
	stop, cancel := a.stopContext(ctx)
	defer cancel()
	a.log.Info("stopping", zap.Stringer("at-most", a.Config().Service.StopTimeout))
	err := errors.Join(a.Stop(stop), broken)
	if err != nil {
		a.log.Error("did not stop cleanly", zap.Error(err))
	}
	return err
}

// reloads reloads the configuration until ctx ends, or returns an error if components are missing
// after a failed reload.
func (a *App) reloads(ctx context.Context, files *config.Watcher, load func() (*config.Config, error),
	hangup <-chan os.Signal, ballast int64) error {
	for {
		changed, end := files.Watch(&a.Config().Service)
		select {
		case <-ctx.Done():
			end()
			return nil
		case <-hangup:
		case <-changed:
		}
		end()
		files.Reset()
		if err := a.Reload(ctx, load); errors.Is(err, errBroken) {
			return err
		}
		a.limitMemory(ballast)
	}
}
