package query

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// answerTime is a time in a response.
type answerTime struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler. Texts are nanoseconds.
func (a *answerTime) UnmarshalJSON(data []byte) error {
	text, err := strconv.Unquote(string(data))
	if err != nil || text == "" {
		return err
	}
	ns, err := strconv.ParseInt(text, 10, 64)
	a.Time = time.Unix(0, ns).UTC()
	return err
}

// toldIncident is what a response says about the incident of a service.
type toldIncident struct {
	Name          string
	Kind          string
	Start, End    *answerTime
	SlowFrom      int64
	Calls, Errors int
	P95, P99      int64
	AllSpans      bool
}

// card is an incident of GET /api/ui/v1/incidents.
type card struct {
	Source struct {
		toldIncident
		Usual *struct {
			Calls, Errors int
			P95           int64
		}
	}
	Reached []struct{ Name string }
	Version *struct {
		To         string
		Of, Others struct{ Calls, Errors int }
	}
	Roots *struct {
		Services      []string
		Calls, Errors int
		Usual         *struct{ Calls, Errors int }
	}
	Errors []struct {
		Service, Title string
		Follows        bool
	}
	TraceID, SpanID string
}

// clock writes a time before noon.
func clock(before time.Duration) string { return querytest.Noon.Add(-before).UTC().Format("15:04") }

// text says what an incident is, as the pages do.
func (i *toldIncident) text() string {
	if i == nil || i.Kind == "" {
		return "as usual"
	}
	text := fmt.Sprintf("fails %.0f %%", 100*float64(i.Errors)/float64(max(1, i.Calls)))
	if i.Kind == "slow" {
		text = fmt.Sprintf("p95 %d ms", i.P95/1e6)
	}
	switch {
	case i.Start == nil:
	case i.End == nil:
		text += " since " + i.Start.Format("15:04")
	default:
		text += fmt.Sprintf(" %s to %s", i.Start.Format("15:04"), i.End.Format("15:04"))
	}
	return text
}

func (p *plantedIncident) text() string {
	text := fmt.Sprintf("%s fails %.0f %%", p.source, 100*p.share)
	if p.slow {
		text = p.source + " is slow"
	}
	switch {
	case p.from == 0:
	case p.to == 0:
		text += " since " + clock(p.from)
	default:
		text += fmt.Sprintf(" %s to %s", clock(p.from), clock(p.to))
	}
	return text
}

// near reports whether a response names the time of an incident, which may be wrong by a few
// minutes, because calls fail by chance.
func (p *plantedIncident) near(start, end *answerTime, precision time.Duration) bool {
	is := func(t *answerTime, before time.Duration) bool {
		if t == nil || before == 0 {
			return t == nil && before == 0
		}
		off := t.Sub(querytest.Noon.Add(-before))
		if p.growing {
			return off > 0 && off < 2*time.Hour
		}
		return off.Abs() <= precision
	}
	return is(start, p.from) && is(end, p.to)
}

const toTheMinute = 7 * time.Minute

// check returns what is wrong in what a response says about the source, or "".
func (p *plantedIncident) check(i *toldIncident) string {
	if i == nil {
		return "missed"
	}
	share := float64(i.Errors) / float64(max(1, i.Calls))
	switch {
	case (i.Kind == "slow") != p.slow:
		return "wrong kind"
	case !p.near(i.Start, i.End, toTheMinute):
		return "wrong time"
	case !p.slow && (share < p.share/2 || share > 1.5*p.share+0.05):
		return "wrong share"
	}
	return ""
}

// uiPages asks for what the pages of the UI show.
type uiPages struct {
	t *testing.T
	h http.Handler
}

func (p uiPages) ask(route string, data any, params ...string) {
	p.t.Helper()
	v := url.Values{}
	for i := 0; i < len(params); i += 2 {
		v.Add(params[i], params[i+1])
	}
	w := querytest.Ask(p.t, p.h, http.MethodGet, "/api/ui/v1/"+route+"?"+v.Encode())
	answer := struct {
		Data   any
		Errors []struct{ Msg string }
	}{Data: data}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK || len(answer.Errors) > 0 {
		p.t.Fatalf("%s %v: status %d, %v, %v\n%.300s", route, params, w.Code, err, answer.Errors, w.Body)
	}
}

func nanosOf(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// during returns the parameters of a time range that ends some time before noon.
func during(length, before time.Duration) []string {
	return []string{"start", nanosOf(querytest.Noon.Add(-before - length)), "end", nanosOf(querytest.Noon.Add(-before))}
}

func (p uiPages) cards(params ...string) []card {
	p.t.Helper()
	var data struct{ Incidents []card }
	p.ask("incidents", &data, params...)
	return data.Incidents
}

// affected returns the services that the overview calls affected, with their incidents.
func (p uiPages) affected(params ...string) map[string]*toldIncident {
	p.t.Helper()
	var data struct {
		Services []struct {
			Name     string
			Incident *toldIncident
		}
	}
	p.ask("services", &data, params...)
	out := make(map[string]*toldIncident)
	for _, s := range data.Services {
		if s.Incident != nil {
			out[s.Name] = s.Incident
		}
	}
	return out
}

// service returns what the page of a service says about its requests.
func (p uiPages) service(name string, params ...string) *toldIncident {
	p.t.Helper()
	var data struct {
		Roles []struct {
			Total struct{ Incident *toldIncident }
		}
	}
	p.ask("service", &data, append(params, "service", name)...)
	return data.Roles[0].Total.Incident
}

// errorGroup is a group of the page Errors.
type errorGroup struct {
	Service, Type string
	Count         int
	Trend         struct {
		Kind         string
		Factor       float64
		Since, Until *answerTime
	}
}

func (g *errorGroup) text() string {
	text := g.Service + " " + g.Type
	switch {
	case g.Trend.Kind == "usual":
		return text + " as before"
	case g.Trend.Kind == "new":
		text += " new"
	default:
		text += fmt.Sprintf(" ×%.0f", g.Trend.Factor)
	}
	text += " since " + g.Trend.Since.Format("15:04")
	if g.Trend.Until != nil {
		text += " to " + g.Trend.Until.Format("15:04")
	}
	return text
}

// errors returns the groups of the page Errors, largest growth first.
func (p uiPages) errors(params ...string) []errorGroup {
	p.t.Helper()
	var data struct{ Groups []errorGroup }
	p.ask("errors", &data, append(params, "before", "1", "sort", "growth")...)
	return data.Groups
}

// explain asks what the button of a card does.
func (p uiPages) explain(s *toldIncident) (out explained) {
	p.t.Helper()
	from, to := querytest.Noon.Add(-time.Hour), querytest.Noon
	if s.Start != nil {
		from = s.Start.Time
	}
	if s.End != nil {
		to = s.End.Time
	}
	params := []string{"q", fmt.Sprintf("{ service = %q && (kind = server || kind = consumer) }", s.Name), "of", "spans"}
	if s.Kind == "slow" {
		params = append(params, "sel_start", nanosOf(from), "sel_end", nanosOf(to), "sel_min", fmt.Sprint(s.SlowFrom, "ns"),
			"sel_max", fmt.Sprint(10*s.P99, "ns"))
	} else {
		params = append(params, "sel_q", "{ error }")
	}
	if s.Kind == "slow" || s.Errors > s.Calls/2 {
		from = from.Add(-max(to.Sub(from), 30*time.Minute))
	}
	p.ask("explain", &out, append(params, "start", nanosOf(from), "end", nanosOf(to))...)
	return out
}

// tested is a system whose pages are read.
type tested struct {
	uiPages
	*plantedSystem
	ofTrace  map[string]plantedTrace
	problems []string
	row      [6]string // of the table
	explains int       // explanations of incidents with an input, and those that name it first
	found    int
	without  int // explanations of incidents without one, and those that claim one
	claims   int
	hours    int // without an incident, and those with a card
	alarms   int
}

func (s *tested) wrong(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// expected returns the incidents that have not ended before the range.
func (s *tested) expected(length time.Duration) (list []plantedIncident) {
	for _, i := range s.truth {
		if i.to < length {
			list = append(list, i)
		}
	}
	return list
}

const mostCards = 8

// overview checks the cards of a time range, and returns those that belong to expected incidents.
func (s *tested) overview(length time.Duration) (texts []string, matched map[int]card) {
	want := s.expected(length)
	cards := s.cards(during(length, 0)...)
	matched = make(map[int]card)
	for n, c := range cards {
		i := &c.Source.toldIncident
		texts = append(texts, i.Name+" "+i.text())
		at := slices.IndexFunc(want, func(p plantedIncident) bool { return p.source == i.Name && p.near(i.Start, i.End, toTheMinute) })
		if _, taken := matched[at]; at < 0 || taken {
			s.wrong("%s: card %d: %s %s", length, n+1, i.Name, i.text())
			continue
		}
		matched[at] = c
		if why := want[at].check(i); why != "" {
			s.wrong("%s: card %d: %s: %s", length, n+1, texts[n], why)
		}
		if n > 0 && i.End == nil && cards[n-1].Source.End != nil {
			s.wrong("%s: card %d goes on, the one before has ended", length, n+1)
		}
		s.card(&want[at], &c)
	}
	if len(cards) != min(len(want), mostCards) {
		s.wrong("%s: %d cards, want %d", length, len(cards), len(want))
	}
	return texts, matched
}

// card checks what else a card says.
func (s *tested) card(want *plantedIncident, c *card) {
	var reached []string
	for _, r := range c.Reached {
		reached = append(reached, r.Name)
	}
	text := c.Source.Name + " " + c.Source.text()
	if got := strings.Join(reached, ", "); got != want.reached {
		s.wrong("%s: reached %s, want %s", text, got, want.reached)
	}
	version := ""
	if v := c.Version; v != nil {
		version = v.To
		if v.Of.Errors*4 < v.Of.Calls || v.Others.Errors*20 > v.Others.Calls || v.Of.Calls+v.Others.Calls != c.Source.Calls {
			s.wrong("%s: version %+v", text, v)
		}
	}
	if version != want.version {
		s.wrong("%s: version %q, want %q", text, version, want.version)
	}
	if u := c.Source.Usual; u != nil && 4*u.Errors >= u.Calls {
		s.wrong("%s: %+v is not usual", text, u)
	}
	if c.TraceID == "" || c.SpanID == "" {
		s.wrong("%s: no example", text)
	}
	users := want.users
	if users == "" {
		users = "web"
	}
	if c.Roots == nil || !slices.Equal(c.Roots.Services, []string{users}) {
		s.wrong("%s: users %+v, want %s", text, c.Roots, users)
	} else if u := c.Roots.Usual; u != nil && 20*u.Errors > u.Calls {
		s.wrong("%s: usual of users %+v", text, u)
	}
	if len(c.Errors) > 0 && (c.Errors[0].Service != want.source || c.Errors[0].Follows) || len(c.Errors) == 0 && !want.slow {
		s.wrong("%s: errors %+v", text, c.Errors)
	}
}

// services checks the table of services and the page of each.
func (s *tested) services() (texts []string) {
	affected := s.affected(during(time.Hour, 0)...)
	told := make(map[string]bool) // of several incidents of a service, the first is told
	for _, want := range s.expected(time.Hour) {
		if told[want.source] {
			continue
		}
		told[want.source] = true
		if why := want.check(affected[want.source]); why != "" {
			s.wrong("services: %s %s: %s", want.source, affected[want.source].text(), why)
		}
		for _, name := range append([]string{want.source}, strings.Split(want.reached, ", ")...) {
			i := s.service(name, during(time.Hour, 0)...)
			if i == nil || affected[name] == nil || i.text() != affected[name].text() {
				s.wrong("page of %s: %s, in the table of services: %s", name, i.text(), affected[name].text())
			}
			if name == want.source {
				texts = append(texts, name+" "+i.text())
			}
		}
	}
	if len(s.expected(time.Hour)) == 0 {
		for name, i := range affected {
			s.wrong("services: %s %s", name, i.text())
		}
		texts = append(texts, "payment "+s.service("payment", during(time.Hour, 0)...).text())
	}
	return texts
}

// failures checks the page Errors.
func (s *tested) failures() (texts []string) {
	groups := s.errors(during(time.Hour, 0)...)
	told := make(map[string]bool)
	for _, want := range s.expected(time.Hour) {
		if told[want.source] || want.slow || want.growing || want.from > 2*time.Hour { // no errors, or nothing else is read
			continue
		}
		told[want.source] = true
		at := slices.IndexFunc(groups, func(g errorGroup) bool { return g.Service == want.source })
		if at < 0 {
			s.wrong("Errors: nothing of %s", want.source)
			continue
		}
		g := &groups[at]
		const pause = 10 * time.Minute // by chance, there can be no error at the end
		if end := g.Trend.Until; want.to == 0 && end != nil && querytest.Noon.Sub(end.Time) < pause {
			g.Trend.Until = nil
		}
		right := want.from == 0 || g.Trend.Kind == "usual" && slices.ContainsFunc(s.truth, func(earlier plantedIncident) bool {
			return earlier.source == want.source && earlier.to > 0 && earlier.to < 2*time.Hour // as many before
		})
		for _, earlier := range s.truth { // it may have begun with an earlier one
			if earlier.source == want.source && !right {
				earlier.to = min(want.to, earlier.to)
				right = earlier.near(g.Trend.Since, g.Trend.Until, pause)
			}
		}
		if !right {
			s.wrong("Errors: %s", g.text())
		}
	}
	for i := range groups {
		if i < 2 {
			texts = append(texts, groups[i].text())
		}
		if len(s.truth) == 0 && !s.nightly && groups[i].Trend.Kind == "growing" {
			s.wrong("Errors: %s", groups[i].text())
		}
	}
	return texts
}

// explanation checks what Explain says about an incident.
func (s *tested) explanation(want *plantedIncident, c *card) string {
	got := s.explain(&c.Source.toldIncident)
	lines, inputs := got.Attributes.Lines, got.inputs()
	if want.inputs == "" {
		s.without++
		if len(inputs) > 0 {
			s.claims++
			return "claims " + inputs[0]
		}
		return "no input"
	}
	s.explains++
	named := func(field, value string) bool { return slices.Contains(strings.Fields(want.inputs), field+"="+value) }
	if len(lines) > 0 && (named(lines[0].Field, lines[0].Value) ||
		slices.ContainsFunc(lines[0].Same, func(n explainedName) bool { return named(n.Field, n.Value) })) {
		s.found++
		return inputs[0]
	}
	return fmt.Sprintf("%q instead of %s", inputs, want.inputs)
}

// trace checks what the page of the newest bad trace says: its incident, and what is usual.
func (s *tested) trace(want *plantedIncident, c *card) {
	id := c.TraceID
	cards := s.cards("service", want.source, "start", nanosOf(s.ofTrace[id].start.Add(-time.Hour)), "end", nanosOf(querytest.Noon))
	if !slices.ContainsFunc(cards, func(o card) bool {
		return o.Source.Name == want.source && want.near(o.Source.Start, o.Source.End, toTheMinute)
	}) {
		s.wrong("trace of %s: %d incidents", want.source, len(cards))
	}
	var usual struct {
		Operations struct {
			Service []string
			P95     []int64
		}
	}
	s.ask("baseline/"+id, &usual)
	const p95 = 45 * int64(time.Millisecond) // of the inner services as planted
	at := slices.Index(usual.Operations.Service, want.source)
	if s.traces == nil && want.from > 0 && (at < 0 || usual.Operations.P95[at] > p95) {
		s.wrong("trace: usual of %s: %+v", want.source, usual.Operations)
	}
	var typical struct{ TraceID string }
	s.ask("typical/"+id, &typical)
	if t, ok := s.ofTrace[typical.TraceID]; !ok || t.failed {
		s.wrong("trace: typical is %q, which failed: %t", typical.TraceID, t.failed)
	}
}

// quiet counts cards in hours without an incident, which end some time before noon.
func (s *tested) quiet(from, to time.Duration) {
	for end := from; end < to; end += time.Hour {
		if slices.ContainsFunc(s.truth, func(i plantedIncident) bool { return end < i.from && i.to < end+time.Hour }) {
			continue
		}
		s.hours++
		if cards := s.cards(during(time.Hour, end)...); len(cards) > 0 {
			s.alarms++
			s.t.Logf("%s: until %s: %s %s", s.kind, clock(end), cards[0].Source.Name, cards[0].Source.text())
		}
	}
}

// plantedTrace is what is known of a trace.
type plantedTrace struct {
	start           time.Time
	root            string // service
	failed, rootBad bool
}

func tracesOf(td ptrace.Traces) map[string]plantedTrace {
	out := make(map[string]plantedTrace)
	for _, rs := range td.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				id := span.TraceID()
				text := hex.EncodeToString(id[:])
				t := out[text]
				bad := span.Status().Code() == ptrace.StatusCodeError
				t.failed = t.failed || bad
				if span.ParentSpanID().IsEmpty() {
					t.start, t.root, t.rootBad = span.StartTimestamp().AsTime(), service.Str(), bad
				}
				out[text] = t
			}
		}
	}
	return out
}

// locate moves the times of the truth to the first and the last error, which may be later and
// earlier than planted.
func (s *tested) locate(td ptrace.Traces) {
	for i := range s.truth {
		p := &s.truth[i]
		if p.slow || p.growing || p.from == 0 {
			continue
		}
		first, last := p.to, p.from
		for _, rs := range td.ResourceSpans().All() {
			service, _ := rs.Resource().Attributes().Get("service.name")
			if service.Str() != p.source {
				continue
			}
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					before := querytest.Noon.Sub(span.StartTimestamp().AsTime())
					if span.Status().Code() == ptrace.StatusCodeError && before <= p.from && before > p.to {
						first, last = max(first, before), min(last, before)
					}
				}
			}
		}
		if p.from = first; p.to > 0 {
			p.to = last
		}
	}
}

// users checks the numbers of a card about the requests that begin traces.
func (s *tested) users(c *card) {
	if c.Roots == nil || c.Source.Start == nil {
		return
	}
	end := querytest.Noon
	if c.Source.End != nil {
		end = c.Source.End.Time
	}
	calls, errors := 0, 0
	for _, t := range s.ofTrace {
		if slices.Contains(c.Roots.Services, t.root) && !t.start.Before(c.Source.Start.Time) && t.start.Before(end) {
			calls++
			if t.rootBad {
				errors++
			}
		}
	}
	if c.Roots.Calls != calls || c.Roots.Errors != errors {
		s.wrong("users of %s: %+v, want %d of %d", c.Source.Name, c.Roots, errors, calls)
	}
}

// read asks for all pages.
func (s *tested) read() {
	var truths []string
	for i := range s.truth {
		if i == 3 {
			truths = append(truths, fmt.Sprintf("and %d before", len(s.truth)-i))
			break
		}
		truths = append(truths, s.truth[i].text())
	}
	if len(truths) == 0 {
		truths = []string{"nothing unusual"}
	}
	var now []string
	var explanations []string
	for _, length := range []time.Duration{5 * time.Minute, time.Hour, 24 * time.Hour} {
		texts, matched := s.overview(length)
		if length != time.Hour {
			continue
		}
		now = texts
		for i, want := range s.expected(length) {
			if c, ok := matched[i]; ok {
				s.users(&c)
				s.trace(&want, &c)
				explanations = append(explanations, s.explanation(&want, &c))
			}
		}
	}
	if len(now) == 0 {
		now = []string{"nothing unusual"}
	}
	for i, texts := range [][]string{{s.kind}, truths, now, s.services(), s.failures(), explanations} {
		s.row[i] = strings.Join(texts, "; ")
	}
}

// TestIncidents plants incidents of all kinds and reads what the pages of the UI say.
func TestIncidents(t *testing.T) {
	soak.SkipIfRaced(t)
	rounds := uint64(soak.Rounds(t, 3, 1))
	var mutex sync.Mutex
	var all []*tested
	t.Run("systems", func(t *testing.T) {
		for i, p := range plantedSystems() {
			for seed := range rounds {
				if seed > 0 && p.traces != nil {
					continue
				}
				t.Run(p.kind, func(t *testing.T) {
					t.Parallel()
					p := p // of this seed
					p.truth = slices.Clone(p.truth)
					td := p.planted(t, 100*uint64(i)+seed)
					h, _ := api(t, querytest.FilledMemory(t, td), func(o *core.Options) { o.Limits.Scanned, o.Limits.Aggregated = 1e6, 1e6 })
					s := &tested{uiPages: uiPages{t, h}, plantedSystem: &p, ofTrace: tracesOf(td)}
					s.locate(td)
					s.read()
					s.quiet(time.Hour, time.Duration(soak.Rounds(t, 8, 3))*time.Hour)
					mutex.Lock()
					all = append(all, s)
					mutex.Unlock()
					for _, text := range s.problems {
						t.Error(text)
					}
				})
			}
		}
	})
	report(t, all)
}

// report logs the table, and checks the numbers of all systems.
func report(t *testing.T, all []*tested) {
	var sum tested
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "kind\ttruth\toverview\tservice\tErrors\tExplain")
	slices.SortStableFunc(all, func(a, b *tested) int { return strings.Compare(a.kind, b.kind) })
	for i, s := range all {
		if i == 0 || all[i-1].kind != s.kind {
			fmt.Fprintln(w, strings.Join(s.row[:], "\t"))
		}
		sum.explains, sum.found, sum.without, sum.claims = sum.explains+s.explains, sum.found+s.found, sum.without+s.without, sum.claims+s.claims
		sum.hours, sum.alarms = sum.hours+s.hours, sum.alarms+s.alarms
	}
	w.Flush()
	t.Logf("\n%s", &table)
	t.Logf("Explain names the input first in %d of %d, and claims one in %d of %d without; cards in %d of %d quiet hours",
		sum.found, sum.explains, sum.claims, sum.without, sum.alarms, sum.hours)
	if 10*sum.found < 9*sum.explains || 20*sum.claims > max(20, sum.without) || 50*sum.alarms > max(50, sum.hours) {
		t.Error("too many are wrong")
	}
}
