package status

import (
	"cmp"
	"slices"
	"strings"
)

// Balance is the equation of the spans of pipelines:
//
//	received = stored + sent + refused + dropped + queued + held + in progress
//
// Pipelines that share processors or exporters have one equation. If spans are passed to several
// pipelines or exporters, they count once for each way. Spans that a pipeline passes to a connector
// are sent; spans that a connector passes to a pipeline are received.
type Balance struct {
	Pipelines []string `json:"pipelines"`
	Ways      int      `json:"ways"`     // to exporters, of the pipeline with most of them
	Received  int64    `json:"received"` // by receivers, and from extensions that write spans
	Stored    int64    `json:"stored"`
	Sent      int64    `json:"sent"` // accepted by next hops
	Refused   int64    `json:"refused"`
	Dropped   int64    `json:"dropped"`
	Lost      int64    `json:"lost"` // the part of Dropped that was not dropped on purpose
	Queued    int64    `json:"queued"`
	Held      int64    `json:"held"`
	// Difference is Received minus all of the above.
	Difference int64   `json:"difference"`
	Verdict    Verdict `json:"verdict"`
}

// Verdict says whether a [Balance] holds.
type Verdict string

// Verdicts.
const (
	Balanced   Verdict = "balanced"
	InProgress Verdict = "in_progress" // the difference is spans that are being processed
	// Twice says that spans have several outcomes: they were stored on one way and refused on
	// another, so that their sender resends them.
	Twice Verdict = "twice"
	// More says that more spans left than arrived: an earlier process left them in a queue on disk,
	// or a processor made them.
	More       Verdict = "more"
	Unbalanced Verdict = "unbalanced"
	// Unknown says that a processor's counters cover several pipelines with different ways.
	Unknown Verdict = "unknown"
)

// Way describes the destination of spans that do not come from a receiver: an extension writes them
// to an exporter.
type Way struct{ Extension, Exporter string }

// BalanceInput is the input of Balances.
type BalanceInput struct {
	Pipelines []Pipeline
	Accounts  []Account
	Stores    map[string]bool // ids of exporters that store or discard spans instead of sending them
	Writers   []Way
	Busy      bool // requests are in progress
}

// Balances returns the equations of all pipelines.
func Balances(in BalanceInput) []Balance {
	out := []Balance{}
	for _, group := range groups(in.Pipelines) {
		out = append(out, in.balance(group))
	}
	return out
}

// groups returns the pipelines by shared processors and exporters.
func groups(all []Pipeline) [][]Pipeline {
	var out [][]Pipeline
	for _, p := range all {
		joined := []Pipeline{p}
		out = slices.DeleteFunc(out, func(g []Pipeline) bool {
			shares := slices.ContainsFunc(g, func(o Pipeline) bool { return shareOutput(o, p) })
			if shares {
				joined = append(slices.Clone(g), joined...)
			}
			return shares
		})
		out = append(out, joined)
	}
	return out
}

func shareOutput(a, b Pipeline) bool {
	return slices.ContainsFunc(a.Components, func(c Component) bool {
		return c.role() != kindReceiver && slices.ContainsFunc(b.Components, func(o Component) bool {
			return o.Component == c.Component && o.Kind == c.Kind && o.role() != kindReceiver
		})
	})
}

const (
	kindReceiver  = "receiver"
	kindProcessor = "processor"
	kindExporter  = "exporter"
	kindConnector = "connector"
	kindExtension = "extension"
)

// role returns the role of the component in its pipeline.
func (c Component) role() string { return cmp.Or(c.Role, c.Kind) }

// members returns the components that have a role in a pipeline.
func members(p Pipeline, role string) []Component {
	var out []Component
	for _, c := range p.Components {
		if c.role() == role {
			out = append(out, c)
		}
	}
	return out
}

// balance returns the equation of a group.
func (in *BalanceInput) balance(group []Pipeline) Balance {
	b := Balance{}
	processors, exporters := map[string]int{}, map[Component]bool{} // ways behind a processor; kinds and ids of exporters
	unknown := false
	for _, p := range group {
		b.Pipelines = append(b.Pipelines, p.Pipeline)
		ways := len(members(p, kindExporter))
		b.Ways = max(b.Ways, ways)
		for _, r := range members(p, kindReceiver) {
			received, refused := in.received(r, p.Pipeline)
			b.Received += received * int64(ways)
			b.Refused += refused * int64(ways)
		}
		for _, c := range members(p, kindProcessor) {
			before, known := processors[c.Component]
			unknown = unknown || known && before != ways
			processors[c.Component] = ways
		}
		for _, e := range members(p, kindExporter) {
			exporters[Component{Component: e.Component, Kind: e.Kind}] = true
		}
	}
	for id, ways := range processors {
		b.count(in.account(id, kindProcessor), int64(ways))
	}
	for e := range exporters {
		a := in.account(e.Component, e.Kind)
		if b.count(a, 1); e.Kind == kindExporter && in.Stores[e.Component] {
			b.Stored += a.Sent
		} else {
			b.Sent += a.Sent
		}
		for _, w := range in.Writers {
			if w.Exporter == e.Component && e.Kind == kindExporter {
				a := in.account(w.Extension, kindExtension)
				b.Received += a.In
				b.Refused += a.Refused
			}
		}
	}
	b.Difference = b.Received - b.Stored - b.Sent - b.Refused - b.Dropped - b.Queued - b.Held
	b.Verdict = in.verdict(&b, group, unknown)
	return b
}

// count adds the dropped, queued and held spans of a processor or exporter.
func (b *Balance) count(a Account, ways int64) {
	b.Dropped += a.Dropped * ways
	b.Lost += a.Lost * ways
	b.Queued += a.Queued * ways
	b.Held += a.Held * ways
}

// received returns the number of spans that a receiver or connector offered to a pipeline, and how
// many of them were refused.
func (in *BalanceInput) received(from Component, pipeline string) (offered, refused int64) {
	a := in.account(from.Component, from.Kind)
	if from.Kind != kindConnector {
		return a.In, a.Refused
	}
	for _, b := range a.Branches {
		if b.Pipeline == pipeline {
			return b.Accepted + b.Refused, b.Refused
		}
	}
	return 0, 0
}

func (in *BalanceInput) account(id, kind string) Account {
	i := slices.IndexFunc(in.Accounts, func(a Account) bool { return a.Component == id && a.Kind == kind })
	if i < 0 {
		return Account{}
	}
	return in.Accounts[i]
}

func (in *BalanceInput) verdict(b *Balance, group []Pipeline, unknown bool) Verdict {
	switch {
	case unknown:
		return Unknown
	case b.Difference == 0:
		return Balanced
	case b.Difference > 0 && in.Busy:
		return InProgress
	case b.Difference < 0 && -b.Difference <= b.Refused && in.fansOut(group):
		return Twice
	case b.Difference < 0:
		return More
	}
	return Unbalanced
}

// Lower bounds for the encoded size in bytes of a span, in any format, and of a log record.
const (
	minSpanBytes   = 16
	minRecordBytes = 2
)

// Unaccounted returns the part of Difference that requests in progress, of the given total size in
// bytes, cannot explain. It is 0 if the verdict is [Unknown].
func (b *Balance) Unaccounted(inProgress int64) int64 {
	if b.Verdict == Unknown {
		return 0
	}
	least := int64(minSpanBytes)
	if slices.ContainsFunc(b.Pipelines, func(p string) bool { return p == "logs" || strings.HasPrefix(p, "logs/") }) {
		least = minRecordBytes
	}
	return max(b.Difference-inProgress/least*int64(max(b.Ways, 1)), 0)
}

// fansOut reports whether a receiver of a group passes its spans to more than one way.
func (in *BalanceInput) fansOut(group []Pipeline) bool {
	for _, p := range group {
		for _, r := range members(p, kindReceiver) {
			ways := 0
			for _, other := range in.Pipelines {
				feeds := func(o Component) bool { return o.Component == r.Component && o.Kind == r.Kind }
				if slices.ContainsFunc(members(other, kindReceiver), feeds) {
					ways += len(members(other, kindExporter))
				}
			}
			if ways > 1 {
				return true
			}
		}
	}
	return false
}

// SortReasons sorts reasons, the most frequent first.
func SortReasons(all []Outcome) {
	slices.SortFunc(all, func(a, b Outcome) int {
		return cmp.Or(-cmp.Compare(a.Spans, b.Spans), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason))
	})
}
