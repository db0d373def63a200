package pipeline

import (
	"net/http"
	"slices"
)

// Administered is a component with routes for operators. The admin extension serves them while the component runs, below
// /exporters/ID/ (or receivers, extensions), a prefix that the handler does not see.
type Administered interface {
	AdminHandler() http.Handler
}

// AdminHandler returns the routes of a component. It is nil for one that has none or does not run, and for processors, which may run several
// times.
func (a *App) AdminHandler(kind Kind, id ID) http.Handler {
	a.mu.Lock()
	i := slices.IndexFunc(a.started, func(n *node) bool { return n.config.key == componentKey{kind, id} && n.pipeline == "" })
	var n *node
	if i >= 0 {
		n = a.started[i]
	}
	a.mu.Unlock()
	if n == nil {
		return nil
	}
	c, ok := n.value.(Administered)
	if !ok {
		return nil
	}
	return c.AdminHandler()
}
