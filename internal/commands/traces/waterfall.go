package traces

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	durationColumns = 8
	minLabel        = 20
	shownServices   = 8 // maximum number of services in the header
)

// waterfall prints a forest, one row for each span: its label with the position in the tree,
// service and operation; a bar for its time; its duration.
type waterfall struct {
	forest     *forest
	screen     screen
	zone       *time.Location
	out        *bufio.Writer
	colors     map[string]string // by service
	from, to   int64             // microseconds
	label, bar int               // columns
	printed    map[string]bool   // processes whose tags were printed
}

// writeWaterfall prints a trace. Rows of spans fit in the screen width; notes and details are not
// wrapped.
func writeWaterfall(out io.Writer, f *forest, s screen, zone *time.Location) error {
	w := &waterfall{forest: f, screen: s, zone: zone, out: bufio.NewWriter(out), colors: map[string]string{}, printed: map[string]bool{}}
	w.from, w.to = f.trace.extent()
	w.computeLayout()
	w.head()
	w.scale()
	err := w.forest.walk(func(i int32) error {
		w.row(i)
		w.below(i)
		return w.failed()
	})
	if err != nil {
		return err
	}
	w.foot()
	return w.out.Flush()
}

// failed returns the write error of the output, if any.
func (w *waterfall) failed() error {
	_, err := w.out.Write(nil)
	return err
}

func (w *waterfall) line(parts ...string) {
	line := strings.Join(parts, "")
	w.out.WriteString(strings.TrimRight(line, " ")) //nolint:errcheck // Flush returns it
	w.out.WriteByte('\n')                           //nolint:errcheck // as above
}

// computeLayout divides the width. Labels have at most half of it; longer labels are cut.
func (w *waterfall) computeLayout() {
	longest := minLabel
	cap := max(minLabel, w.screen.width/2)
	w.forest.walk(func(i int32) error { //nolint:errcheck // the function returns no error
		tree, service, operation := w.labelOf(i, cap)
		longest = max(longest, width(tree)+width(service)+width(operation))
		return nil
	})
	w.label = min(longest, cap)
	w.bar = max(1, w.screen.width-w.label-durationColumns-len(" ! ")-len(" "))
}

// head prints the header: facts about the whole trace.
func (w *waterfall) head() {
	t := w.forest.trace
	w.line(w.screen.paint(bold, "trace "+clean(t.id)))
	services := map[string]bool{}
	var names []string
	orphans := 0
	for _, i := range w.forest.order {
		name := t.service(&t.spans[i])
		if !services[name] {
			services[name] = true
			names = append(names, clean(name))
		}
		if w.forest.hasMissingParent(i) {
			orphans++
		}
	}
	start := "no start time"
	if w.from > 0 {
		start = time.UnixMicro(w.from).In(w.zone).Format("2006-01-02 15:04:05.000000 MST")
	}
	facts := []string{start, short(w.total()), count(len(t.spans), "span", "spans")}
	if n := t.failures(); n > 0 {
		facts = append(facts, w.screen.paint(red, count(n, "error", "errors")))
	}
	if orphans > 0 {
		facts = append(facts, w.screen.paint(yellow, count(orphans, "span with a missing parent", "spans with missing parents")))
	}
	w.line(strings.Join(facts, ", "))
	w.line(count(len(names), "service", "services"), ": ", someOf(names, shownServices))
	for _, warning := range t.warnings {
		w.line(w.screen.paint(yellow, "warning: "+clean(warning)))
	}
}

// someOf joins at most the first few names.
func someOf(names []string, few int) string {
	if more := len(names) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (w *waterfall) total() time.Duration { return time.Duration(w.to-w.from) * time.Microsecond }

// scale prints the time scale above the bars.
func (w *waterfall) scale() {
	w.line()
	middle, end := short(w.total()/2), short(w.total())
	line := "0s"
	if half := w.bar/2 - width(middle)/2; half > len(line) && w.bar-width(end) > half+width(middle)+1 {
		line = fit(line, half) + middle
	}
	if w.bar > width(line)+width(end) {
		line = fit(line, w.bar-width(end)) + end
	}
	w.line(strings.Repeat(" ", w.label+len(" ! ")), w.screen.paint(dim, line))
}

// row prints the row of a span.
func (w *waterfall) row(i int32) {
	s := &w.forest.trace.spans[i]
	tree, service, operation := w.labelOf(i, w.label)
	color := w.color(w.forest.trace.service(s))
	mark, barColor := " ", color
	switch {
	case s.failed:
		mark, barColor = w.screen.paint(red, "!"), red
	case len(s.warnings) > 0 || w.hasNotes(i):
		mark = w.screen.paint(yellow, "?")
	}
	available := max(0, w.label-width(tree))
	service = shorten(service, available)
	operation = fit(operation, available-width(service))
	before, bar, after := w.barOf(s)
	w.line(w.screen.paint(dim, tree), w.screen.paint(color, service), operation, " ", mark, " ",
		before, w.screen.paint(barColor, bar), after, " ", alignRight(short(s.duration), durationColumns))
}

func (w *waterfall) hasNotes(i int32) bool { return len(w.forest.notes(i)) > 0 }

// color returns the color of a service. New services get the next one.
func (w *waterfall) color(service string) string {
	c, ok := w.colors[service]
	if !ok {
		c = serviceColor(len(w.colors))
		w.colors[service] = c
	}
	return c
}

// labelOf returns the parts of a label. Together they may be too long.
func (w *waterfall) labelOf(i int32, columns int) (tree, service, operation string) {
	s, n := &w.forest.trace.spans[i], &w.forest.nodes[i]
	service, operation = clean(w.forest.trace.service(s)), ": "+clean(s.operation)
	if n.hidden > 0 {
		operation = " (+" + strconv.Itoa(n.hidden) + " hidden)" + operation
	}
	return w.tree(i, columns), service, operation
}

// Parts of the lines of a tree.
const (
	branch, lastBranch = "├ ", "└ "
	trunk, noTrunk     = "│ ", "  "
)

// tree returns the tree lines before the label of a span. If they took more than half of the label,
// it returns the depth as a number.
func (w *waterfall) tree(i int32, columns int) string {
	n := &w.forest.nodes[i]
	if n.depth == 0 {
		return ""
	}
	if n.depth*2 > columns/2 {
		return fit(fmt.Sprintf("%s%d ", ellipsis, n.depth), columns/4*2)
	}
	if n.last {
		return w.trunks(n.parent) + lastBranch
	}
	return w.trunks(n.parent) + branch
}

// trunks returns the vertical lines below a span that lead to later spans.
func (w *waterfall) trunks(i int32) string {
	pieces := make([]string, w.forest.nodes[i].depth)
	for at := i; w.forest.nodes[at].depth > 0; at = w.forest.nodes[at].parent {
		pieces[w.forest.nodes[at].depth-1] = trunk
		if w.forest.nodes[at].last {
			pieces[w.forest.nodes[at].depth-1] = noTrunk
		}
	}
	return strings.Join(pieces, "")
}

// barOf returns the bar of a span, at least one column, and the spaces around it. A span without
// duration is a thin line; a span without start time has no bar.
func (w *waterfall) barOf(s *span) (before, bar, after string) {
	if s.start == 0 {
		return "", "", strings.Repeat(" ", w.bar)
	}
	column := func(at int64) float64 { return float64(at-w.from) / float64(max(1, w.to-w.from)) * float64(w.bar) }
	from := min(int(column(s.start)), w.bar-1)
	to := min(max(int(column(s.end())+0.5), from+1), w.bar)
	piece := "█"
	if s.duration == 0 {
		piece = "│"
	}
	return strings.Repeat(" ", from), strings.Repeat(piece, to-from), strings.Repeat(" ", w.bar-to)
}

// below prints warnings, notes, and details of a span below its row.
func (w *waterfall) below(i int32) {
	s := &w.forest.trace.spans[i]
	notes := w.forest.notes(i)
	if len(notes)+len(s.warnings) == 0 && s.details == nil {
		return
	}
	indent := w.indent(i)
	for _, note := range append(notes, s.warnings...) {
		w.line(indent, w.screen.paint(yellow, "? "+clean(note)))
	}
	if s.details != nil {
		w.details(i, indent)
	}
}

// indent returns the indentation of the lines below a span's row.
func (w *waterfall) indent(i int32) string {
	n := &w.forest.nodes[i]
	if n.depth*2 > w.label/2 {
		return strings.Repeat(" ", w.label/4*2)
	}
	indent := w.trunks(i) + noTrunk
	if w.hasShownChildren(i) {
		indent = w.trunks(i) + trunk
	}
	return w.screen.paint(dim, indent)
}

// hasShownChildren checks only the first child, because shown children come first.
func (w *waterfall) hasShownChildren(i int32) bool {
	c := w.forest.nodes[i].children
	return len(c) > 0 && w.forest.nodes[c[0]].shown
}

// foot prints how many spans are not shown.
func (w *waterfall) foot() {
	left := len(w.forest.nodes) - w.forest.shown
	if left == 0 {
		return
	}
	text := count(left, "span", "spans") + " hidden"
	if w.forest.hiddenFailures > 0 {
		text += " (" + count(w.forest.hiddenFailures, "error", "errors") + ")"
	}
	w.line()
	w.line(w.screen.paint(yellow, fmt.Sprintf("%s, the deepest first; use --max-spans %d to show all", text, len(w.forest.nodes))))
}
