package delivery

import (
	"cmp"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// account is the number of spans of one component by outcome.
type account struct {
	component Component
	outcomes  map[string]int64
	lost      int64            // dropped, but not on purpose
	reasons   []status.Outcome // of refused and dropped spans
	branches  []status.Branch  // of a connector
}

// balanced reports whether all incoming spans have an outcome.
func (a account) balanced() bool {
	in := a.outcomes[outcomeReceived] + a.outcomes[outcomeIn]
	for o, n := range a.outcomes {
		if o != outcomeReceived && o != outcomeIn {
			in -= n
		}
	}
	return in == 0
}

// add adds spans with an outcome.
func (a *account) add(outcome, reason string, spans int64) {
	a.outcomes[outcome] += spans
	if reason != "" && spans != 0 {
		a.reasons = append(a.reasons, status.Outcome{Outcome: outcome, Reason: reason, Spans: spans})
	}
	if outcome == outcomeDropped && reason != pipeline.DroppedByPolicy {
		a.lost += spans
	}
}

// addBranch adds spans that a connector passed to a pipeline.
func (a *account) addBranch(to, outcome string, spans int64) {
	i := slices.IndexFunc(a.branches, func(b status.Branch) bool { return b.Pipeline == to })
	if i < 0 {
		i = len(a.branches)
		a.branches = append(a.branches, status.Branch{Pipeline: to})
	}
	if outcome == outcomeAccepted {
		a.branches[i].Accepted += spans
	} else {
		a.branches[i].Refused += spans
	}
}

// MarshalLogObject writes the component, its kind and a number for each outcome.
func (a account) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("component", a.component.Name())
	e.AddString("kind", a.component.Kind)
	for _, o := range []string{outcomeReceived, outcomeAccepted, outcomeIn, outcomeSent, outcomeRefused, outcomeDropped,
		outcomeQueued, outcomeHeld} {
		if n, ok := a.outcomes[o]; ok {
			e.AddInt64(o, n)
		}
	}
	return nil
}

type accounts []account

// MarshalLogArray writes the accounts.
func (as accounts) MarshalLogArray(e zapcore.ArrayEncoder) error {
	for _, a := range as {
		if err := e.AppendObject(a); err != nil {
			return err
		}
	}
	return nil
}

// LogAccounting logs the outcome of all spans since the start, by component.
func (m *Metrics) LogAccounting(log *zap.Logger, peakInflight int64) {
	all, err := m.accounts()
	if err != nil {
		log.Error("cannot read the accounting of spans", zap.Error(err))
		return
	}
	balanced := !slices.ContainsFunc(all, func(a account) bool { return !a.balanced() })
	log.Info("final accounting of spans", zap.Array("components", all), zap.Bool("balanced", balanced),
		zap.Int64("peak-inflight-bytes", peakInflight))
}

// accounts reads the counters of all edges. It gathers them in a separate registry, because a
// component's faulty collector would make gathering fail.
func (m *Metrics) accounts() (accounts, error) {
	reg := prometheus.NewRegistry()
	if err := errors.Join(reg.Register(m.items[otlpdata.SignalTraces]), reg.Register(m.items[otlpdata.SignalLogs]),
		reg.Register(m.branches)); err != nil {
		return nil, err
	}
	families, err := reg.Gather()
	if err != nil {
		return nil, err
	}
	byComponent := map[Component]*account{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			l := labels(metric)
			l["kind"] = cmp.Or(l["kind"], pipeline.KindConnector.String()) // branches have no label for it
			c := Component{Kind: l["kind"], ID: l["component"]}
			if f.GetName() == metricLogRecords {
				c.Signal = otlpdata.SignalLogs
			}
			if byComponent[c] == nil {
				byComponent[c] = &account{component: c, outcomes: map[string]int64{}}
			}
			if spans := int64(metric.GetCounter().GetValue()); l["pipeline"] != "" {
				byComponent[c].addBranch(l["pipeline"], l["outcome"], spans)
			} else {
				byComponent[c].add(l["outcome"], l["reason"], spans)
			}
		}
	}
	for c, q := range m.queues.states() {
		if a, ok := byComponent[c]; ok {
			a.outcomes[outcomeQueued] = q.spans
		}
	}
	for c, held := range m.holders.spans() {
		if a, ok := byComponent[c]; ok {
			a.outcomes[outcomeHeld] = held
		}
	}
	var all accounts
	for _, a := range byComponent {
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b account) int { // receivers first
		return cmp.Or(-cmp.Compare(a.component.Kind, b.component.Kind), cmp.Compare(a.component.Name(), b.component.Name()))
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
