package pipeline

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// account is what became of the spans of one component.
type account struct {
	component, kind string
	outcomes        map[string]int64
}

// balanced reports whether everything that came in is accounted for.
func (c account) balanced() bool {
	in := c.outcomes[outcomeReceived] + c.outcomes[outcomeIn]
	for o, n := range c.outcomes {
		if o != outcomeReceived && o != outcomeIn {
			in -= n
		}
	}
	return in == 0
}

// MarshalLogObject writes component, kind and one number per outcome.
func (c account) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("component", c.component)
	e.AddString("kind", c.kind)
	for _, o := range []string{outcomeReceived, outcomeAccepted, outcomeIn, outcomeSent, outcomeRefused, outcomeDropped, outcomeQueued} {
		if n, ok := c.outcomes[o]; ok {
			e.AddInt64(o, n)
		}
	}
	return nil
}

type accounts []account

// MarshalLogArray writes the accounts.
func (as accounts) MarshalLogArray(e zapcore.ArrayEncoder) error {
	for _, c := range as {
		if err := e.AppendObject(c); err != nil {
			return err
		}
	}
	return nil
}

// accounts reads the counters of all edges, and of nothing else: a component's broken collector must not hide them.
func (t *telemetry) accounts() (accounts, error) {
	edges := prometheus.NewRegistry()
	if err := edges.Register(t.spans); err != nil {
		return nil, err
	}
	families, err := edges.Gather()
	if err != nil {
		return nil, err
	}
	byComponent := map[[2]string]account{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			l := labels(m)
			key := [2]string{l["kind"], l["component"]}
			if byComponent[key].outcomes == nil {
				byComponent[key] = account{component: l["component"], kind: l["kind"], outcomes: map[string]int64{}}
			}
			byComponent[key].outcomes[l["outcome"]] += int64(m.GetCounter().GetValue())
		}
	}
	for key, q := range t.queues.states() {
		if c, ok := byComponent[[2]string{key.kind.String(), key.id.String()}]; ok {
			c.outcomes[outcomeQueued] = q.spans
		}
	}
	var all accounts
	for _, c := range byComponent {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b account) int {
		return cmp.Or(-cmp.Compare(a.kind, b.kind), cmp.Compare(a.component, b.component))
	})
	return all, nil
}

func labels(m *dto.Metric) map[string]string {
	l := map[string]string{}
	for _, p := range m.GetLabel() {
		l[p.GetName()] = p.GetValue()
	}
	return l
}

// logAccounting writes the line that says what became of every span since the start.
func (a *App) logAccounting() {
	all, err := a.tel.accounts()
	if err != nil {
		a.log.Error("cannot read the accounting of spans", zap.Error(err))
		return
	}
	balanced := !slices.ContainsFunc(all, func(c account) bool { return !c.balanced() })
	a.log.Info("final accounting of spans", zap.Array("components", all), zap.Bool("balanced", balanced),
		zap.Int64("peak-inflight-bytes", a.budget.Peak()))
}
