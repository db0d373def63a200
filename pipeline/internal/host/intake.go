package host

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// Intake returns what the running receivers have received.
func (a *App) Intake() status.Intake {
	a.mu.Lock()
	running := slices.Clone(a.started) // their listeners are open
	a.mu.Unlock()
	in := status.Intake{Since: a.began, Dropped: a.metrics.delivery.Dropped()}
	for _, n := range running {
		if n.config.Key.Kind != pipeline.KindReceiver {
			continue
		}
		var open []status.Listener
		if l, ok := n.component.(pipeline.Listening); ok {
			open = l.OpenListeners()
		}
		in.Receivers = append(in.Receivers, a.metrics.delivery.Received(n.deliveryName()).Receivers(open)...)
	}
	slices.SortFunc(in.Receivers, func(a, b status.Receiver) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Transport, b.Transport))
	})
	return in
}
