package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// variablePrefix is the prefix of the program's own variables.
const variablePrefix = "TRACING_"

// foreignVariable matches names with the prefix that have another meaning: variables of client
// libraries and tests, and variables that Kubernetes sets for a service whose name begins with
// `tracing`.
var foreignVariable = regexp.MustCompile(`^TRACING_(SAMPLER|REPORTER|AGENT|PROPAGATION)_` +
	`|^TRACING_(ENDPOINT|USER|PASSWORD|AUTH_TOKEN|SERVICE_NAME|TAGS|DISABLED|SEED|SOAK|URL)$` +
	`|_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?$`)

// warnVariables warns about variables with the program's prefix that nothing reads, because they
// are probably misspelled. used are the variables that the configuration reads.
func (l *loader) warnVariables(o *Options, used map[string]bool) {
	var own []string
	for _, entry := range o.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, variablePrefix) && !used[name] {
			own = append(own, name)
		}
	}
	if len(own) == 0 {
		return
	}
	known, flags := []string{}, []string{}
	for _, v := range commands.Variables() {
		known = append(known, v.Name)
	}
	for _, f := range Flags(o.Factories) {
		flags = append(flags, f.Env())
	}
	for _, name := range own {
		rest := strings.TrimPrefix(name, variablePrefix)
		switch {
		case slices.Contains(known, name) || slices.Contains(flags, name) || foreignVariable.MatchString(name):
		case slices.Contains(flags, rest):
			l.warn(variablePos(name), nil, "unknown environment variable has no effect; did you mean %q?", rest)
		default:
			l.warn(variablePos(name), nil, "unknown environment variable has no effect%s", yamltree.Suggest(name, known, "known"))
		}
	}
}

// variablePos returns a position for messages about a variable, which sorts after positions in
// files.
func variablePos(name string) yamltree.Pos {
	const last = 1 << 30
	return yamltree.Pos{Source: "environment " + name, Order: last}
}
