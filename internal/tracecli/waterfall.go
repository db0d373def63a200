package tracecli

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
	shownServices   = 8 // in the line of services
)

// waterfall writes a forest, one row for each span: its place in the tree, service and operation; a bar where it is in time; its duration.
type waterfall struct {
	*forest
	screen     screen
	zone       *time.Location
	out        *bufio.Writer
	colours    map[string]string // of services
	from, to   int64             // microseconds
	label, bar int               // columns
	told       map[string]bool   // processes whose tags were written
}

// writeWaterfall writes the trace. Lines of spans fit into the screen's width; notes and details are not broken.
func writeWaterfall(out io.Writer, f *forest, s screen, zone *time.Location) error {
	w := &waterfall{forest: f, screen: s, zone: zone, out: bufio.NewWriter(out), colours: map[string]string{}, told: map[string]bool{}}
	w.from, w.to = f.trace.extent()
	w.layOut()
	w.head()
	w.scale()
	err := w.walk(func(i int32) error {
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

// failed reports whether there is anybody to write for.
func (w *waterfall) failed() error {
	_, err := w.out.Write(nil)
	return err
}

func (w *waterfall) line(parts ...string) {
	line := strings.Join(parts, "")
	w.out.WriteString(strings.TrimRight(line, " ")) //nolint:errcheck // kept by the writer
	w.out.WriteByte('\n')                           //nolint:errcheck // as above
}

// layOut divides the width: half of it at most is for labels, of which the deepest are cut.
func (w *waterfall) layOut() {
	longest := minLabel
	cap := max(minLabel, w.screen.width/2)
	w.walk(func(i int32) error { //nolint:errcheck // of the function below
		tree, service, operation := w.labelOf(i, cap)
		longest = max(longest, width(tree)+width(service)+width(operation))
		return nil
	})
	w.label = min(longest, cap)
	w.bar = max(1, w.screen.width-w.label-durationColumns-len(" ! ")-len(" "))
}

// head writes what is true of the trace as a whole.
func (w *waterfall) head() {
	t := w.trace
	w.line(w.screen.paint(bold, "trace "+clean(t.id)))
	services := map[string]bool{}
	var names []string
	orphans := 0
	for _, i := range w.order {
		name := t.service(&t.spans[i])
		if !services[name] {
			services[name] = true
			names = append(names, clean(name))
		}
		if w.isOrphan(i) {
			orphans++
		}
	}
	start := "no start"
	if w.from > 0 {
		start = time.UnixMicro(w.from).In(w.zone).Format("2006-01-02 15:04:05.000000 MST")
	}
	facts := []string{start, short(w.total()), count(len(t.spans), "span", "spans")}
	if n := t.failures(); n > 0 {
		facts = append(facts, w.screen.paint(red, count(n, "error", "errors")))
	}
	if orphans > 0 {
		facts = append(facts, w.screen.paint(yellow, count(orphans, "span without its parent", "spans without their parents")))
	}
	w.line(strings.Join(facts, ", "))
	w.line(count(len(names), "service", "services"), ": ", someOf(names, shownServices))
	for _, warning := range t.warnings {
		w.line(w.screen.paint(yellow, "warning: "+clean(warning)))
	}
}

// someOf joins the first few.
func someOf(names []string, few int) string {
	if more := len(names) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (w *waterfall) total() time.Duration { return time.Duration(w.to-w.from) * time.Microsecond }

// scale writes the line of times above the bars.
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

// row writes the line of a span.
func (w *waterfall) row(i int32) {
	s := &w.trace.spans[i]
	tree, service, operation := w.labelOf(i, w.label)
	colour := w.colour(w.trace.service(s))
	mark, barColour := " ", colour
	switch {
	case s.failed:
		mark, barColour = w.screen.paint(red, "!"), red
	case len(s.warnings) > 0 || w.isOdd(i):
		mark = w.screen.paint(yellow, "?")
	}
	room := max(0, w.label-width(tree))
	service = shorten(service, room)
	operation = fit(operation, room-width(service))
	before, bar, after := w.barOf(s)
	w.line(w.screen.paint(dim, tree), w.screen.paint(colour, service), operation, " ", mark, " ",
		before, w.screen.paint(barColour, bar), after, " ", alignRight(short(s.duration), durationColumns))
}

func (w *waterfall) isOdd(i int32) bool { return len(w.notes(i)) > 0 }

// colour returns the colour of a service: the next one, when it is new.
func (w *waterfall) colour(service string) string {
	c, ok := w.colours[service]
	if !ok {
		c = serviceColour(len(w.colours))
		w.colours[service] = c
	}
	return c
}

// labelOf returns the parts of a label, which may be too long together.
func (w *waterfall) labelOf(i int32, columns int) (tree, service, operation string) {
	s, n := &w.trace.spans[i], &w.nodes[i]
	service, operation = clean(w.trace.service(s)), ": "+clean(s.operation)
	if n.hidden > 0 {
		operation = " (+" + strconv.Itoa(n.hidden) + " below)" + operation
	}
	return w.tree(i, columns), service, operation
}

// Pieces of the lines between spans.
const (
	branch, lastBranch = "├ ", "└ "
	trunk, noTrunk     = "│ ", "  "
)

// tree returns what stands before the name of a span: lines to its parent and past it. Where that would take more than half of the label it
// is the depth as a number.
func (w *waterfall) tree(i int32, columns int) string {
	n := &w.nodes[i]
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

// trunks returns the lines that pass below a span, on the way to those that come after it.
func (w *waterfall) trunks(i int32) string {
	pieces := make([]string, w.nodes[i].depth)
	for at := i; w.nodes[at].depth > 0; at = w.nodes[at].parent {
		pieces[w.nodes[at].depth-1] = trunk
		if w.nodes[at].last {
			pieces[w.nodes[at].depth-1] = noTrunk
		}
	}
	return strings.Join(pieces, "")
}

// barOf returns the bar, which takes one column at least, and the blanks around it. A span without a duration is a thin line, one without a
// start has no bar.
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

// below writes what belongs to a span and is no row: warnings, what is odd, and details where they are wanted.
func (w *waterfall) below(i int32) {
	s := &w.trace.spans[i]
	notes := w.notes(i)
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

// indent returns what stands before lines below a span's row.
func (w *waterfall) indent(i int32) string {
	n := &w.nodes[i]
	if n.depth*2 > w.label/2 {
		return strings.Repeat(" ", w.label/4*2)
	}
	indent := w.trunks(i) + noTrunk
	if w.hasShownChildren(i) {
		indent = w.trunks(i) + trunk
	}
	return w.screen.paint(dim, indent)
}

// hasShownChildren looks at the first child alone: those that are shown come first.
func (w *waterfall) hasShownChildren(i int32) bool {
	c := w.nodes[i].children
	return len(c) > 0 && w.nodes[c[0]].shown
}

// foot says what was left out.
func (w *waterfall) foot() {
	left := len(w.nodes) - w.shown
	if left == 0 {
		return
	}
	text := count(left, "span is", "spans are") + " left out"
	if w.hiddenFailures > 0 {
		text += " (" + count(w.hiddenFailures, "error", "errors") + ")"
	}
	w.line()
	w.line(w.screen.paint(yellow, fmt.Sprintf("%s, the deepest first; --max-spans %d shows all", text, len(w.nodes))))
}
