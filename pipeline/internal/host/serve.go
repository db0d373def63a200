package host

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// Serve starts the app, reloads the configuration on SIGHUP and when a file has changed, and stops
// the app when ctx ends or a failed reload leaves it incomplete. It logs errors before it returns
// them, and keeps the service manager informed.
func (a *App) Serve(ctx context.Context, files *config.Watcher, load func() (*config.Config, error)) error {
	ballast, release := a.tuneGC()
	defer release()
	a.limitMemory(ballast)
	defer a.log.Sync() //nolint:errcheck // standard error cannot always be synced
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	a.manager = newServiceManager(a.log)
	defer a.beginKeepAlive()()
	if err := a.Start(ctx); err != nil {
		a.log.Error("cannot start", zap.Error(err))
		a.manager.failed("cannot start", err)
		return err
	}
	a.manager.health(a.Health()) // a process that was never ready has not logged the reason
	a.manager.ready()
	broken := a.reloads(ctx, files, load, hangup, ballast)
	stop, cancel := a.stopContext(ctx)
	defer cancel()
	timeout := a.Config().Service.StopTimeout
	a.log.Info("stopping", zap.Stringer("at-most", timeout))
	a.manager.stopping(timeout.Std())
	err := errors.Join(a.Stop(stop), broken)
	if err != nil {
		a.log.Error("did not stop cleanly", zap.Error(err))
		a.manager.failed("did not stop cleanly", err)
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
		if err := a.managedReload(ctx, load); errors.Is(err, errBroken) {
			return err
		}
		a.limitMemory(ballast)
	}
}

// managedReload is Reload between messages to the service manager.
func (a *App) managedReload(ctx context.Context, load func() (*config.Config, error)) error {
	a.manager.reloading()
	err := a.Reload(ctx, load)
	switch {
	case errors.Is(err, errBroken):
		return err
	case err != nil:
		a.manager.failed("configuration reload failed; the previous configuration stays", err)
	default:
		a.manager.health(a.Health())
	}
	a.manager.ready()
	return err
}

// beginKeepAlive sends signs of life to the service manager, while the locks of the app are free,
// until the function that it returns is called.
func (a *App) beginKeepAlive() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var sender sync.WaitGroup
	sender.Go(func() { a.manager.keepAlive(ctx, func() { a.Health() }) })
	return func() {
		cancel()
		sender.Wait()
	}
}
