package sampling

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Members of a strategies file, whose format is that of the field: default_strategy and a list of service_strategies. A mistake is an
// error: nothing is guessed, and nothing that was meant to have an effect is left out in silence.
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

// written is a strategy as a file has it.
type written struct {
	at         int
	service    string
	typ        sampling.Type
	param      float64
	operations []writtenOperation
}

type writtenOperation struct {
	at          int
	name        string
	probability float64
}

// writtenFile is what a file says. services have different names.
type writtenFile struct {
	doc       *document
	byDefault *written // default_strategy; nil: none
	services  []written
	ignored   []string // members that mean nothing, with their places
}

// readStrategies reads a strategies file. The error has a line for each mistake. `null` is a file without strategies.
func readStrategies(name string, text []byte) (*writtenFile, error) {
	doc, err := parseDocument(name, text)
	if err != nil {
		return nil, err
	}
	r := &reader{doc: doc}
	f := &writtenFile{doc: doc}
	if doc.root.kind != scalarKind || doc.root.scalar != nil {
		r.file(doc.root, f)
	}
	f.ignored = r.ignored
	return f, doc.problems(r.problems...)
}

// reader collects the mistakes of a file.
type reader struct {
	doc      *document
	problems []problem
	ignored  []string
}

func (r *reader) problem(at int, format string, args ...any) {
	r.problems = append(r.problems, problem{at, fmt.Sprintf(format, args...)})
}

func (r *reader) file(v value, f *writtenFile) {
	all := r.object(v, "a strategies file", keyDefault, keyServices)
	if m, ok := all[keyDefault]; ok && !m.isNull() {
		w := r.strategy(m.value, keyDefault)
		f.byDefault = &w
	}
	services, ok := all[keyServices]
	if !ok || services.isNull() {
		return
	}
	if services.kind != arrayKind {
		r.problem(services.value.at, "%s must be a list, not %s; write [ ] around the strategies", keyServices, services.what())
		return
	}
	lines := map[string]int{}
	for _, item := range services.items {
		w := r.strategy(item, keyServices)
		if line, twice := lines[w.service]; twice && w.service != "" {
			r.problem(w.at, "service %s has a strategy already, on line %d; delete one of them", quoted(w.service), line)
		}
		lines[w.service] = r.doc.line(w.at)
		f.services = append(f.services, w)
	}
}

// strategy reads an entry of section, keyDefault or keyServices.
func (r *reader) strategy(v value, section string) written {
	w := written{at: v.at}
	known := []string{keyType, keyParam, keyOperations, keyService}
	all := r.object(v, "a strategy", known...)
	if all == nil {
		return w
	}
	service, named := all[keyService]
	switch {
	case section == keyServices:
		w.service = r.name(v, service, named, keyService, keyDefault+" is the one for all other services")
	case named:
		r.problem(service.member.at, "%s is for all services; one with a name belongs into %s", keyDefault, keyServices)
	}
	typ, ok := r.typ(v, all)
	if !ok {
		return w
	}
	w.typ, w.param = typ, r.param(v, all, typ)
	if m, ok := all[keyOperations]; ok && !m.isNull() {
		w.operations = r.operations(m)
		if typ == sampling.RateLimiting && len(w.operations) > 0 {
			r.problem(m.member.at, "clients ignore the limit of a service that has %s; make it %s, or delete them",
				keyOperations, typeProbabilistic)
		}
	}
	return w
}

func (r *reader) operations(m found) []writtenOperation {
	if m.kind != arrayKind {
		r.problem(m.value.at, "%s must be a list, not %s; write [ ] around the strategies", keyOperations, m.what())
		return nil
	}
	var out []writtenOperation
	lines := map[string]int{}
	for _, item := range m.items {
		all := r.object(item, "a strategy of an operation", keyOperation, keyType, keyParam)
		if all == nil {
			continue
		}
		o := writtenOperation{at: item.at}
		name, named := all[keyOperation]
		o.name = r.name(item, name, named, keyOperation, "the strategy around it is the one for all other operations")
		if line, twice := lines[o.name]; twice && o.name != "" {
			r.problem(item.at, "operation %s has a strategy already, on line %d; delete one of them", quoted(o.name), line)
		}
		lines[o.name] = r.doc.line(item.at)
		typ, ok := r.typ(item, all)
		if ok && typ == sampling.RateLimiting {
			r.problem(all[keyType].value.at, "clients know no limit for one operation; write %q and a probability", typeProbabilistic)
		} else if ok {
			o.probability = r.param(item, all, typ)
		}
		out = append(out, o)
	}
	return out
}

// found is a member that is there.
type found struct {
	member
}

func (f found) isNull() bool { return f.kind == scalarKind && f.scalar == nil }

// object returns the members of an object by name, nil if v is none. A name that occurs twice, or is close to a known one, is a mistake.
func (r *reader) object(v value, what string, known ...string) map[string]found {
	if v.kind != objectKind {
		r.problem(v.at, "%s must be an object, not %s; write { } around its members", what, v.what())
		return nil
	}
	all := map[string]found{}
	for _, m := range v.members {
		if before, twice := all[m.name]; twice {
			r.problem(m.at, "%s was already given on line %d", quoted(m.name), r.doc.line(before.member.at))
			continue
		}
		all[m.name] = found{m}
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

// name reads the name of a service or an operation, which must not be empty.
func (r *reader) name(in value, m found, ok bool, key, otherwise string) string {
	name, isText := m.scalar.(string)
	switch {
	case !ok:
		r.problem(in.at, "%s is missing; %s", key, otherwise)
	case !isText:
		r.problem(m.value.at, "%s must be a text, not %s", key, m.what())
	case name == "":
		r.problem(m.value.at, "%s is empty; %s", key, otherwise)
	}
	return name
}

func (r *reader) typ(in value, all map[string]found) (typ sampling.Type, ok bool) {
	m, given := all[keyType]
	name, isText := m.scalar.(string)
	switch {
	case !given:
		r.problem(in.at, "%s is missing; write %q or %q", keyType, typeProbabilistic, typeRateLimiting)
	case isText && name == typeProbabilistic:
		return sampling.Probabilistic, true
	case isText && name == typeRateLimiting:
		return sampling.RateLimiting, true
	case isText:
		hint := fmt.Sprintf("write %q or %q", typeProbabilistic, typeRateLimiting)
		if meant, _ := closest(name, []string{typeProbabilistic, typeRateLimiting}); meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		} else if name == "const" {
			hint = fmt.Sprintf("write %q with the param 1 or 0", typeProbabilistic)
		}
		r.problem(m.value.at, "unknown type %s; %s", quoted(name), hint)
	default:
		r.problem(m.value.at, "%s must be a text, not %s", keyType, m.what())
	}
	return 0, false
}

// param reads the parameter of a strategy of the type.
func (r *reader) param(in value, all map[string]found, typ sampling.Type) float64 {
	meaning := "a probability from 0 to 1"
	if typ == sampling.RateLimiting {
		meaning = "a whole number of traces per second"
	}
	m, ok := all[keyParam]
	if !ok {
		r.problem(in.at, "%s is missing; write %s", keyParam, meaning)
		return 0
	}
	number, isNumber := m.scalar.(json.Number)
	if !isNumber {
		r.problem(m.value.at, "%s must be a number, not %s; write %s", keyParam, m.what(), meaning)
		return 0
	}
	param, err := number.Float64()
	switch {
	case err != nil, param < 0, typ == sampling.RateLimiting && param > math.MaxInt32:
		r.problem(m.value.at, "%s is not %s", number, meaning)
	case typ == sampling.RateLimiting && param != math.Trunc(param):
		r.problem(m.value.at, "%s is not %s, and clients know no other; write %.0f or %.0f",
			number, meaning, math.Floor(param), math.Ceil(param))
	case typ == sampling.Probabilistic && param > 1 && param <= 100:
		r.problem(m.value.at, "%s is not %s; for %s %% write %.4g, for a number of traces per second take the type %q",
			number, meaning, number, param/100, typeRateLimiting)
	case typ == sampling.Probabilistic && param > 1:
		r.problem(m.value.at, "%s is not %s; for a number of traces per second take the type %q", number, meaning, typeRateLimiting)
	}
	return param
}

// closest returns the known name that a name is (isKnown), or may have been meant to be; "" if it is far from all of them.
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

// plain returns a name as it is in all styles.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// distance is the number of insertions, deletions and replacements between two words.
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
