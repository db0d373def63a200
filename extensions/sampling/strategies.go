package sampling

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Members of a strategies file: default_strategy and a list of service_strategies, in the common
// format of the field. A member that cannot be parsed is a mistake. One that can be parsed but not
// followed is a warning; clients then get the same strategies as from other servers.
const (
	keyDefault    = "default_strategy"
	keyServices   = "service_strategies"
	keyService    = "service"
	keyType       = "type"
	keyParam      = "param"
	keyOperations = "operation_strategies"
	keyOperation  = "operation"
)

const (
	typeProbabilistic = "probabilistic"
	typeRateLimiting  = "ratelimiting"
)

// fileStrategy is an entry of a strategies file.
type fileStrategy struct {
	at         int
	service    string
	typ        sampling.Type
	param      float64
	operations []fileOperation
}

// fileOperation is an entry of operation_strategies.
type fileOperation struct {
	at          int
	name        string
	probability float64
}

// strategiesFile is the parsed content of a file. Service names are unique.
type strategiesFile struct {
	doc       *document
	byDefault *fileStrategy // default_strategy; nil if missing
	services  []fileStrategy
	ignored   []string // unknown members, with their positions
	warnings  error    // a line for each setting that is not followed as written; nil if there is none
}

// readStrategies parses a strategies file. The error has a line for each mistake. `null` is a file
// without strategies. A strategy of an unknown type is replaced by the default strategy or, if
// there is none, by the given probability.
func readStrategies(name string, text []byte, probability float64) (*strategiesFile, error) {
	doc, err := parseDocument(name, text)
	if err != nil {
		return nil, err
	}
	r := &reader{doc: doc, fallback: fallback{sampling.Probabilistic, probability, ""}}
	f := &strategiesFile{doc: doc}
	if doc.root.kind != scalarKind || doc.root.scalar != nil {
		r.file(doc.root, f)
	}
	f.ignored, f.warnings = r.ignored, doc.problems(r.warnings...)
	return f, doc.problems(r.problems...)
}

// reader converts a document and collects its mistakes.
type reader struct {
	doc      *document
	fallback fallback
	problems []problem
	warnings []problem
	ignored  []string
}

// fallback takes the place of a strategy of an unknown type.
type fallback struct {
	typ   sampling.Type
	param float64
	of    string // the strategy that it is taken from; "" if it is built in
}

func (f fallback) String() string {
	if f.typ == sampling.RateLimiting {
		return fmt.Sprintf("the limit of %.10g traces per second%s", f.param, f.of)
	}
	return fmt.Sprintf("the probability %v%s", f.param, f.of)
}

func (r *reader) problem(at int, format string, args ...any) {
	r.problems = append(r.problems, problem{at, fmt.Sprintf(format, args...)})
}

func (r *reader) warn(at int, format string, args ...any) {
	r.warnings = append(r.warnings, problem{at, fmt.Sprintf(format, args...)})
}

func (r *reader) file(v value, f *strategiesFile) {
	all := r.object(v, "strategies file", keyDefault, keyServices)
	if m, ok := all[keyDefault]; ok && !m.isNull() {
		w := r.strategy(m.value, keyDefault)
		f.byDefault = &w
		r.fallback = fallback{w.typ, w.param, " of " + keyDefault}
	}
	services, ok := all[keyServices]
	if !ok || services.isNull() {
		return
	}
	if services.kind != arrayKind {
		r.problem(services.value.at, "%s must be a list, not %s; put the strategies in [ ]", keyServices, services.what())
		return
	}
	lines := map[string]int{}
	for _, item := range services.items {
		w := r.strategy(item, keyServices)
		if w.service == "" {
			continue // reported
		}
		if line, twice := lines[w.service]; twice {
			r.warn(w.at, "service %s already has a strategy on line %d, which this one replaces; delete one of them",
				quoted(w.service), line)
		}
		lines[w.service] = r.doc.line(w.at)
		f.services = append(f.services, w)
	}
}

// strategy parses an entry of section, which is keyDefault or keyServices.
func (r *reader) strategy(v value, section string) fileStrategy {
	w := fileStrategy{at: v.at}
	known := []string{keyType, keyParam, keyOperations, keyService}
	all := r.object(v, "strategy", known...)
	if all == nil {
		return w
	}
	service, named := all[keyService]
	switch {
	case section == keyServices:
		w.service = r.name(v, service, named, keyService, keyDefault+" applies to all other services")
	case named:
		r.warn(service.at, "%s applies to all services; move a strategy with a service name to %s", keyDefault, keyServices)
	}
	w.typ, w.param = r.typeAndParam(v, all)
	m, ok := all[keyOperations]
	switch {
	case !ok || m.isNull():
	case w.typ == sampling.RateLimiting && len(m.items) > 0:
		r.warn(m.at, "clients ignore the rate limit of a service that has %s, so these are left out; "+
			"change the type to %s, or delete them", keyOperations, typeProbabilistic)
	default:
		outer := r.fallback
		r.fallback = fallback{w.typ, w.param, " of the enclosing strategy"}
		w.operations = r.operations(m)
		r.fallback = outer
	}
	return w
}

// typeAndParam parses the type of a strategy and its parameter. An unknown type is reported; the
// fallback then takes its place.
func (r *reader) typeAndParam(in value, all map[string]member) (sampling.Type, float64) {
	typ, ok := r.typ(in, all)
	if !ok {
		return r.fallback.typ, r.fallback.param
	}
	return typ, r.param(in, all, typ)
}

func (r *reader) operations(m member) []fileOperation {
	if m.kind != arrayKind {
		r.problem(m.value.at, "%s must be a list, not %s; put the strategies in [ ]", keyOperations, m.what())
		return nil
	}
	var out []fileOperation
	lines := map[string]int{}
	for _, item := range m.items {
		all := r.object(item, "operation strategy", keyOperation, keyType, keyParam)
		if all == nil {
			continue
		}
		o := fileOperation{at: item.at}
		name, named := all[keyOperation]
		o.name = r.name(item, name, named, keyOperation, "the enclosing strategy applies to all other operations")
		if o.name == "" {
			continue // reported
		}
		if line, twice := lines[o.name]; twice {
			r.warn(item.at, "operation %s already has a strategy on line %d; delete one of them", quoted(o.name), line)
		}
		lines[o.name] = r.doc.line(item.at)
		typ, probability := r.typeAndParam(item, all)
		if typ == sampling.RateLimiting {
			r.warn(all[keyType].value.at, "clients do not support rate limits for operations, so this one is left out; "+
				"use type %q with a probability", typeProbabilistic)
			continue
		}
		o.probability = probability
		out = append(out, o)
	}
	return out
}

// isNull reports whether the value is null.
func (m member) isNull() bool { return m.kind == scalarKind && m.scalar == nil }

// object returns the members of an object by name; nil if v is not an object. Upper case does not
// matter. Of duplicate members, the last counts.
func (r *reader) object(v value, what string, known ...string) map[string]member {
	if v.kind != objectKind {
		r.problem(v.at, "%s must be an object, not %s; put its members in { }", what, v.what())
		return nil
	}
	all := map[string]member{}
	for _, m := range v.members {
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, m.name) }); i >= 0 {
			m.name = known[i]
		}
		if before, twice := all[m.name]; twice {
			r.warn(m.at, "duplicate member %s replaces the one on line %d", quoted(m.name), r.doc.line(before.at))
		}
		all[m.name] = m
		switch meant, isKnown := closest(m.name, known); {
		case isKnown:
		case meant != "":
			r.warn(m.at, "unknown member %s has no effect; did you mean %q?", quoted(m.name), meant)
		case len(r.ignored) < maxProblems:
			r.ignored = append(r.ignored, fmt.Sprintf("%s:%d: %s", r.doc.name, r.doc.line(m.at), quoted(m.name)))
		}
	}
	return all
}

// name parses the name of a service or an operation, which must not be empty. hint is added to the
// message if it is missing.
func (r *reader) name(in value, m member, ok bool, key, hint string) string {
	name, isText := m.scalar.(string)
	switch {
	case !ok || m.isNull():
		r.warn(in.at, "%s is missing, so this strategy is left out; %s", key, hint)
	case !isText:
		r.problem(m.value.at, "%s must be a string, not %s", key, m.what())
	case name == "":
		r.warn(m.value.at, "%s is empty, so this strategy is left out; %s", key, hint)
	}
	return name
}

func (r *reader) typ(in value, all map[string]member) (typ sampling.Type, ok bool) {
	m, given := all[keyType]
	name, isText := m.scalar.(string)
	switch {
	case !given || m.isNull():
		r.warn(in.at, "%s is missing, so %v applies; use %q or %q", keyType, r.fallback,
			typeProbabilistic, typeRateLimiting)
	case isText && name == typeProbabilistic:
		return sampling.Probabilistic, true
	case isText && name == typeRateLimiting:
		return sampling.RateLimiting, true
	case isText:
		hint := fmt.Sprintf("use %q or %q", typeProbabilistic, typeRateLimiting)
		if meant, _ := closest(name, []string{typeProbabilistic, typeRateLimiting}); meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		} else if name == "const" {
			hint = fmt.Sprintf("use %q with param 1 or 0", typeProbabilistic)
		}
		r.warn(m.value.at, "unknown type %s, so %v applies; %s", quoted(name), r.fallback, hint)
	default:
		r.problem(m.value.at, "%s must be a string, not %s", keyType, m.what())
	}
	return 0, false
}

// param parses the parameter of a strategy of type typ. A number outside its range becomes the
// nearest one that clients follow.
func (r *reader) param(in value, all map[string]member, typ sampling.Type) float64 {
	meaning, limit := "a probability from 0 to 1", 1.0
	if typ == sampling.RateLimiting {
		meaning, limit = "a whole number of traces per second", math.MaxInt32
	}
	m, ok := all[keyParam]
	if !ok || m.isNull() {
		r.warn(in.at, "%s is missing, so it is 0; expected %s", keyParam, meaning)
		return 0
	}
	number, isNumber := m.scalar.(json.Number)
	if !isNumber {
		r.problem(m.value.at, "%s must be a number, not %s; expected %s", keyParam, m.what(), meaning)
		return 0
	}
	param, err := number.Float64()
	if err != nil {
		r.problem(m.value.at, "%s is not %s", number, meaning)
		return 0
	}
	follow := min(max(param, 0), limit)
	if typ == sampling.RateLimiting {
		follow = math.Trunc(follow)
	}
	if follow != param {
		r.warn(m.value.at, "%s is not %s, so clients use %.10g%s", number, meaning, follow, paramHint(number, param, typ))
	}
	return follow
}

// paramHint returns what a parameter outside its range may mean.
func paramHint(number json.Number, param float64, typ sampling.Type) string {
	switch {
	case typ == sampling.RateLimiting || param <= 1:
		return ""
	case param <= 100:
		return fmt.Sprintf("; for %s %% use %.4g, for a number of traces per second use type %q", number, param/100, typeRateLimiting)
	}
	return fmt.Sprintf("; for a number of traces per second use type %q", typeRateLimiting)
}

// closest returns the known name that is equal (isKnown) or similar to name; "" if there is none.
func closest(name string, known []string) (meant string, isKnown bool) {
	if slices.Contains(known, name) {
		return name, true
	}
	for _, k := range known {
		if len(name) <= maxQuoted && distance(plain(name), plain(k)) <= 1+len(k)/5 {
			meant = k
		}
	}
	return meant, false
}

// plain returns a name without case and separators, for comparing naming styles.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// distance returns the Levenshtein distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
