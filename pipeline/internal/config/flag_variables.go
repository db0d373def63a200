package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// Variables returns the flags that are set by environment variables, given as `NAME=value`. Each
// variable that looks like a misspelled variable of a flag becomes a flag that only logs a warning.
// Empty variables, and variables that container platforms set for other services, count as unset.
func Variables(known []Flag, environ []string) []GivenFlag {
	flags := map[string]Flag{}
	for _, f := range known {
		if !f.CommandLine {
			flags[f.Env()] = f
		}
	}
	set, misspelt := map[string]string{}, []GivenFlag(nil)
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(variable, "=")
		if text == "" || isService(name, text) {
			continue
		}
		if _, ok := flags[name]; ok {
			set[name] = text
			continue
		}
		if instead := misspelling(name, flags); instead != "" {
			flag := pipeline.Flag{Name: strings.ToLower(name), Instead: instead}
			misspelt = append(misspelt, GivenFlag{Flag: Flag{Flag: flag}, Text: text, Env: true})
		}
	}
	var given []GivenFlag
	for _, f := range known {
		if text, ok := set[f.Env()]; ok && !f.CommandLine {
			given = append(given, GivenFlag{Flag: f, Text: text, Env: true})
		}
	}
	return append(given, misspelt...)
}

// isService reports whether a variable describes another service: Kubernetes sets COLLECTOR_PORT,
// COLLECTOR_SERVICE_HOST, COLLECTOR_PORT_4317_TCP_ADDR and others for a service called collector.
func isService(name, text string) bool {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case isURL && (scheme == "tcp" || scheme == "udp" || scheme == "sctp"):
		return true
	case strings.HasSuffix(name, "_SERVICE_HOST"), strings.Contains(name+"_", "_SERVICE_PORT_"):
		return true
	}
	_, port, _ := strings.Cut(name, "_PORT_")
	number, protocol, _ := strings.Cut(port, "_")
	return number != "" && strings.Trim(number, "0123456789") == "" &&
		slices.Contains([]string{"TCP", "UDP", "SCTP"}, cmp.Or(strings.Split(protocol, "_")...))
}

// minMisspelt is the minimum length of a name that is compared with known names; short names are
// similar by chance.
const minMisspelt = 10

// maxTypos is the maximum number of typos in a name without a distinctive prefix.
const maxTypos = 2

// misspelling returns what to write instead of a variable that is similar to a known one, or "".
// Variables with the program's own prefix are left to [loader.warnVariables].
func misspelling(name string, flags map[string]Flag) string {
	if len(name) < minMisspelt || strings.HasPrefix(name, variablePrefix) ||
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return ""
	}
	isDistinctive := false
	for _, f := range flags {
		isDistinctive = isDistinctive || f.Distinctive != "" && strings.HasPrefix(name, f.Distinctive)
	}
	var known []string
	for k := range flags { // most variables belong to other programs: skip names that are not similar enough
		if isDistinctive || len(k) <= len(name)+maxTypos && len(k) >= len(name)-maxTypos {
			known = append(known, k)
		}
	}
	slices.Sort(known)
	nearest, distance := yamltree.Nearest(name, known, 1)
	switch {
	case len(nearest) == 0:
		return ""
	case distance <= maxTypos || isDistinctive:
		return fmt.Sprintf("unknown variable; did you mean %s?", nearest[0])
	}
	return ""
}
