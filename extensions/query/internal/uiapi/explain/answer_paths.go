package explain

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxAnsweredPaths is the maximum number of call paths in a response, in addition to the paths in
// the lists.
const maxAnsweredPaths = 1000

// timeAnswer is the list of times.
type timeAnswer struct {
	Differ int              `json:"differ"` // number of operations that differ significantly
	Lines  []timeLineAnswer `json:"lines"`
}

type timeLineAnswer struct {
	Service    string  `json:"service"`
	Name       string  `json:"name"`
	Path       int     `json:"path"` // index in paths of the operation's call path that differs most
	Selected   float64 `json:"selected"`
	Rest       float64 `json:"rest"`
	Difference float64 `json:"difference"`
	Share      float64 `json:"share"` // of the difference of the critical paths; 0 if they do not differ
	Filter     string  `json:"filter"`
}

// shapeAnswer is the list of call paths.
type shapeAnswer struct {
	Lines []shapeLineAnswer `json:"lines"`
}

type shapeLineAnswer struct {
	Service  string          `json:"service"`
	Name     string          `json:"name"`
	Path     int             `json:"path"` // index in paths
	Selected frequencyAnswer `json:"selected"`
	Rest     frequencyAnswer `json:"rest"`
	Below    int             `json:"below"` // number of call paths below this one that differ as well
	Filter   string          `json:"filter"`
}

// frequencyAnswer says how often the traces of a side have a call path.
type frequencyAnswer struct {
	Traces float64 `json:"traces"` // share
	Calls  float64 `json:"calls"`  // mean of all traces
}

// pathColumns are call paths: a list for each member. Parents come before their children.
type pathColumns struct {
	Parent   []int       `json:"parent"` // index, or -1
	Service  []string    `json:"service"`
	Name     []string    `json:"name"`
	Peer     []string    `json:"peer"` // the called system that sends no spans; "": none
	Selected sideColumns `json:"selected"`
	Rest     sideColumns `json:"rest"`
	Omitted  int         `json:"omitted"` // call paths with less time than all others

	index map[int]int // by index in the profile
	peers map[callName]string
}

// sideColumns are the means of the traces of a side.
type sideColumns struct {
	Self  []float64 `json:"self"`  // own time on the critical path
	Calls []float64 `json:"calls"` // number of calls
}

// pathsOf returns the call paths with the most time on the critical path, the paths in the lists,
// and their callers.
func pathsOf(p *tracestore.PathProfile, times *TimeRanking, shapes []ShapeLine, peers map[callName]string) pathColumns {
	total := totals(p)
	wanted := make([]int, 0, len(p.Paths))
	for i := range p.Paths {
		if total[i] > 0 {
			wanted = append(wanted, i)
		}
	}
	slices.SortStableFunc(wanted, func(a, b int) int { return cmp.Compare(total[b], total[a]) })
	omitted := max(len(wanted)-maxAnsweredPaths, 0)
	wanted = wanted[:len(wanted)-omitted]
	for i := range times.Operations {
		wanted = append(wanted, mostDifferent(p, &times.Operations[i]))
	}
	for i := range shapes {
		wanted = append(wanted, shapes[i].Path)
	}
	keep := make([]bool, len(p.Paths))
	for _, i := range wanted {
		for ; i >= 0 && !keep[i]; i = p.Paths[i].Parent {
			keep[i] = true
		}
	}
	out := pathColumns{Parent: []int{}, Service: []string{}, Name: []string{}, Peer: []string{}, Omitted: omitted,
		index: map[int]int{-1: -1}, peers: peers,
		Selected: sideColumns{[]float64{}, []float64{}}, Rest: sideColumns{[]float64{}, []float64{}}}
	for i := range p.Paths {
		if keep[i] {
			out.addPath(p, i)
		}
	}
	return out
}

func (c *pathColumns) addPath(p *tracestore.PathProfile, i int) {
	path := &p.Paths[i]
	c.index[i] = len(c.Parent)
	c.Parent, c.Service, c.Name = append(c.Parent, c.index[path.Parent]), append(c.Service, path.Service), append(c.Name, path.Name)
	called := callName{operation: operationID{path.Service, path.Name}}
	if path.Parent >= 0 {
		called.caller = operationID{p.Paths[path.Parent].Service, p.Paths[path.Parent].Name}
	}
	c.Peer = append(c.Peer, c.peers[called])
	c.Selected.addCounts(&path.Selected, &p.Selected)
	c.Rest.addCounts(&path.Rest, &p.Rest)
}

func (c *sideColumns) addCounts(n *tracestore.PathCounts, of *tracestore.PathSet) {
	c.Self = append(c.Self, math.Round(mean(float64(n.SelfTime), of)))
	c.Calls = append(c.Calls, thousandths(mean(float64(n.Calls), of)))
}

// thousandths rounds a number so that it is short in JSON.
func thousandths(f float64) float64 { return math.Round(f*1000) / 1000 }

// totals returns, for each call path including the paths below it, the larger of the two sides'
// mean times.
func totals(p *tracestore.PathProfile) []float64 {
	selected, rest := make([]float64, len(p.Paths)), make([]float64, len(p.Paths))
	for i := len(p.Paths) - 1; i >= 0; i-- {
		path := &p.Paths[i]
		selected[i] += mean(float64(path.Selected.SelfTime), &p.Selected)
		rest[i] += mean(float64(path.Rest.SelfTime), &p.Rest)
		if path.Parent >= 0 {
			selected[path.Parent] += selected[i]
			rest[path.Parent] += rest[i]
		}
	}
	for i := range selected {
		selected[i] = max(selected[i], rest[i])
	}
	return selected
}

// mostDifferent returns the call path of an operation whose time differs most in the direction of
// the operation.
func mostDifferent(p *tracestore.PathProfile, l *TimeLine) int {
	best, most := -1, math.Inf(-1)
	for i := range p.Paths {
		c := &p.Paths[i]
		if c.Service != l.Service || c.Name != l.Name {
			continue
		}
		difference := mean(float64(c.Selected.SelfTime), &p.Selected) - mean(float64(c.Rest.SelfTime), &p.Rest)
		if difference *= l.Difference; difference > most {
			best, most = i, difference
		}
	}
	return best
}

func timeOf(p *tracestore.PathProfile, r *TimeRanking, index map[int]int) timeAnswer {
	out := timeAnswer{Differ: r.Differ, Lines: make([]timeLineAnswer, len(r.Operations))}
	for i := range r.Operations {
		l := &r.Operations[i]
		out.Lines[i] = timeLineAnswer{
			Service: l.Service, Name: l.Name, Path: index[mostDifferent(p, l)], Selected: math.Round(l.Selected), Rest: math.Round(l.Rest),
			Difference: math.Round(l.Difference), Share: l.Share, Filter: traceql.Format(operation(l.Service, l.Name)),
		}
	}
	return out
}

func shapeOf(p *tracestore.PathProfile, lines []ShapeLine, index map[int]int) shapeAnswer {
	out := shapeAnswer{Lines: make([]shapeLineAnswer, len(lines))}
	for i := range lines {
		l := &lines[i]
		set := operation(l.Service, l.Name)
		if parent := p.Paths[l.Path].Parent; parent >= 0 {
			set = storequery.Relation{Kind: storequery.Child, Left: operation(p.Paths[parent].Service, p.Paths[parent].Name), Right: set}
		}
		out.Lines[i] = shapeLineAnswer{
			Service: l.Service, Name: l.Name, Path: index[l.Path], Selected: frequencyOf(l.Selected), Rest: frequencyOf(l.Rest),
			Below: l.Below, Filter: traceql.Format(set),
		}
	}
	return out
}

func frequencyOf(f PathFrequency) frequencyAnswer {
	return frequencyAnswer{Traces: f.Traces, Calls: thousandths(f.Calls)}
}

// operation returns the spans of an operation.
func operation(service, name string) storequery.SpanSet {
	is := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Op: tracestore.Eq, Value: tracestore.Text(name)}
	return storequery.Select{Where: tracestore.And{serviceIs(service), is}}
}
