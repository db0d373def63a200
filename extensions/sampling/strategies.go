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
// format of the field. Mistakes are errors: the parser does not guess, and does not silently ignore
// settings that look intended.
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
}

// readStrategies parses a strategies file. The error has a line for each mistake. `null` is a file
// without strategies.
func readStrategies(name string, text []byte) (*strategiesFile, error) {
	doc, err := parseDocument(name, text)
	if err != nil {
		return nil, err
	}
	r := &reader{doc: doc}
	f := &strategiesFile{doc: doc}
	if doc.root.kind != scalarKind || doc.root.scalar != nil {
		r.file(doc.root, f)
	}
	f.ignored = r.ignored
	return f, doc.problems(r.problems...)
}

// reader converts a document and collects its mistakes.
type reader struct {
	doc      *document
	problems []problem
	ignored  []string
}

func (r *reader) problem(at int, format string, args ...any) {
	r.problems = append(r.problems, problem{at, fmt.Sprintf(format, args...)})
}

func (r *reader) file(v value, f *strategiesFile) {
	all := r.object(v, "strategies file", keyDefault, keyServices)
	if m, ok := all[keyDefault]; ok && !m.isNull() {
		w := r.strategy(m.value, keyDefault)
		f.byDefault = &w
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
		if line, twice := lines[w.service]; twice && w.service != "" {
			r.problem(w.at, "service %s already has a strategy on line %d; delete one of them", quoted(w.service), line)
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
		r.problem(service.at, "%s applies to all services; move a strategy with a service name to %s", keyDefault, keyServices)
	}
	typ, ok := r.typ(v, all)
	if !ok {
		return w
	}
	w.typ, w.param = typ, r.param(v, all, typ)
	if m, ok := all[keyOperations]; ok && !m.isNull() {
		w.operations = r.operations(m)
		if typ == sampling.RateLimiting && len(w.operations) > 0 {
			r.problem(m.at, "clients ignore the rate limit of a service that has %s; change the type to %s, or delete them",
				keyOperations, typeProbabilistic)
		}
	}
	return w
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
		if line, twice := lines[o.name]; twice && o.name != "" {
			r.problem(item.at, "operation %s already has a strategy on line %d; delete one of them", quoted(o.name), line)
		}
		lines[o.name] = r.doc.line(item.at)
		typ, ok := r.typ(item, all)
		if ok && typ == sampling.RateLimiting {
			r.problem(all[keyType].value.at, "clients do not support rate limits for operations; use type %q with a probability",
				typeProbabilistic)
		} else if ok {
			o.probability = r.param(item, all, typ)
		}
		out = append(out, o)
	}
	return out
}

// isNull reports whether the value is null.
func (m member) isNull() bool { return m.kind == scalarKind && m.scalar == nil }

// object returns the members of an object by name; nil if v is not an object. Duplicate names, and
// names similar to a known one, are mistakes.
func (r *reader) object(v value, what string, known ...string) map[string]member {
	if v.kind != objectKind {
		r.problem(v.at, "%s must be an object, not %s; put its members in { }", what, v.what())
		return nil
	}
	all := map[string]member{}
	for _, m := range v.members {
		if before, twice := all[m.name]; twice {
			r.problem(m.at, "duplicate member %s; first on line %d", quoted(m.name), r.doc.line(before.at))
			continue
		}
		all[m.name] = m
		switch meant, isKnown := closest(m.name, known); {
		case isKnown:
		case meant != "":
			r.problem(m.at, "unknown member %s; did you mean %q?", quoted(m.name), meant)
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
	case !ok:
		r.problem(in.at, "%s is missing; %s", key, hint)
	case !isText:
		r.problem(m.value.at, "%s must be a string, not %s", key, m.what())
	case name == "":
		r.problem(m.value.at, "%s is empty; %s", key, hint)
	}
	return name
}

func (r *reader) typ(in value, all map[string]member) (typ sampling.Type, ok bool) {
	m, given := all[keyType]
	name, isText := m.scalar.(string)
	switch {
	case !given:
		r.problem(in.at, "%s is missing; use %q or %q", keyType, typeProbabilistic, typeRateLimiting)
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
		r.problem(m.value.at, "unknown type %s; %s", quoted(name), hint)
	default:
		r.problem(m.value.at, "%s must be a string, not %s", keyType, m.what())
	}
	return 0, false
}

// param parses the parameter of a strategy of type typ.
func (r *reader) param(in value, all map[string]member, typ sampling.Type) float64 {
	meaning := "a probability from 0 to 1"
	if typ == sampling.RateLimiting {
		meaning = "a whole number of traces per second"
	}
	m, ok := all[keyParam]
	if !ok {
		r.problem(in.at, "%s is missing; expected %s", keyParam, meaning)
		return 0
	}
	number, isNumber := m.scalar.(json.Number)
	if !isNumber {
		r.problem(m.value.at, "%s must be a number, not %s; expected %s", keyParam, m.what(), meaning)
		return 0
	}
	param, err := number.Float64()
	switch {
	case err != nil, param < 0, typ == sampling.RateLimiting && param > math.MaxInt32:
		r.problem(m.value.at, "%s is not %s", number, meaning)
	case typ == sampling.RateLimiting && param != math.Trunc(param):
		r.problem(m.value.at, "%s is not %s; clients support only whole numbers; use %.0f or %.0f",
			number, meaning, math.Floor(param), math.Ceil(param))
	case typ == sampling.Probabilistic && param > 1 && param <= 100:
		r.problem(m.value.at, "%s is not %s; for %s %% use %.4g, for a number of traces per second use type %q",
			number, meaning, number, param/100, typeRateLimiting)
	case typ == sampling.Probabilistic && param > 1:
		r.problem(m.value.at, "%s is not %s; for a number of traces per second use type %q", number, meaning, typeRateLimiting)
	}
	return param
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
