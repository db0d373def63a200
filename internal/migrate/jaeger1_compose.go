package migrate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// readCompose returns the programs of Jaeger 1 among the services of a compose file.
func readCompose(services *block, service string) (programs []jaeger1Program, err error) {
	var names []string
	for _, name := range services.keys() {
		s := services.block(name)
		if s == nil {
			continue
		}
		preset, ok := presetOf(interpolate(s.text("image")))
		if !ok {
			continue
		}
		names = append(names, name)
		if service != "" && service != name {
			continue
		}
		args, err := composeArgs(s)
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		environ := composeEnviron(s)
		var notes []string
		for _, file := range s.texts("env_file") {
			notes = append(notes, fmt.Sprintf("env_file %s: not read; run migrate again with its variables below environment", file))
		}
		programs = append(programs, jaeger1Program{name: name, preset: preset, args: args, environ: environ, notes: notes})
	}
	switch {
	case len(names) == 0:
		return nil, errors.New("compose file has no service with an image of Jaeger 1, such as jaegertracing/all-in-one; " +
			"translate the configuration file of Jaeger 2 by itself")
	case len(programs) == 0:
		return nil, fmt.Errorf("--service %s: compose file has these services of Jaeger 1: %s", service, strings.Join(names, ", "))
	case len(programs) == 1 && service == "":
		programs[0].name = names[0]
	}
	return programs, nil
}

// composeArgs returns the words of `command`, which is a list, or one text.
func composeArgs(s *block) (args []string, err error) {
	v := s.value("command")
	if v != nil && v.Kind == yaml.ScalarNode {
		args, err = shellWords(v.Value)
	} else {
		args = slices.Clone(s.texts("command"))
	}
	for i := range args {
		args[i] = interpolate(args[i])
	}
	if len(args) > 0 {
		if _, isProgram := presetOf(args[0]); isProgram {
			args = args[1:]
		}
	}
	return args, err
}

// composeEnviron returns the variables of `environment`, which is a map, or a list of NAME=value. A
// name without a value is the variable of the shell that starts the service.
func composeEnviron(s *block) (environ []string) {
	env := s.block("environment")
	if env == nil {
		for _, item := range s.texts("environment") {
			environ = append(environ, interpolate(item))
		}
		return environ
	}
	for _, name := range env.keys() {
		environ = append(environ, name+"="+interpolate(env.text(name)))
	}
	return environ
}

// interpolation matches the variables that compose replaces, and their defaults.
var interpolation = regexp.MustCompile(`\$\$|\$\{(\w+)(?::?-([^}]*)|:?\?[^}]*)?\}`)

// interpolate replaces variables of compose by their defaults. Without one, a variable stays, so
// that it is read when the program starts.
func interpolate(text string) string {
	return interpolation.ReplaceAllStringFunc(text, func(found string) string {
		m := interpolation.FindStringSubmatch(found)
		switch {
		case found == "$$":
			return "$"
		case strings.Contains(found, "-"):
			return m[2]
		}
		return found
	})
}
