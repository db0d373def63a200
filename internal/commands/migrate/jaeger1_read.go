package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// readText returns the program for a text: lines NAME=value, or a command line.
func readText(text string) (part, error) {
	if environ, ok := readEnv(text); ok {
		return part{program: &jaeger1Program{preset: presetFor(environ), environ: environ}}, nil
	}
	words, err := shellWords(text)
	if err != nil {
		return part{}, err
	}
	return part{program: readCommandLine(words)}, nil
}

// isFlags reports whether a document holds flags of Jaeger 1.
func isFlags(d *document) bool {
	return slices.ContainsFunc(flatten(d.root.node, ""), jaeger1Flag.MatchString)
}

// isJaeger1 reports whether a text that is not YAML contains flags or environment variables of
// Jaeger 1.
func isJaeger1(text string) bool {
	if environ, ok := readEnv(text); ok {
		return slices.ContainsFunc(environ, jaeger1Variable.MatchString)
	}
	words, err := shellWords(text)
	return err == nil && slices.ContainsFunc(words, func(word string) bool {
		_, isProgram := presetOf(word)
		return isProgram || jaeger1Flag.MatchString(word)
	})
}

// Beginnings of flags and variables by which a text is recognized.
var (
	jaeger1Flag = regexp.MustCompile(`^--?(admin|agent|badger|cassandra|collector|downsampling|es|es-archive|grpc-storage|http-server` +
		`|ingester|kafka|log-level|memory|metrics-|multi-tenancy|processor|prometheus|query|reporter|sampling|span-storage)\b`)
	jaeger1Variable = regexp.MustCompile(`^(ADMIN|AGENT|BADGER|CASSANDRA|COLLECTOR|DOWNSAMPLING|ES|GRPC_STORAGE|HTTP_SERVER` +
		`|INGESTER|KAFKA|LOG_LEVEL|MEMORY|METRICS|MULTI_TENANCY|PROCESSOR|PROMETHEUS|QUERY|REPORTER|SAMPLING|SPAN_STORAGE)[_=]`)
	variableLine = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_]\w*)=(.*)$`)
)

// Settings that only one program has.
var (
	ofIngester  = regexp.MustCompile(`^(--?kafka\.consumer\.|--?ingester\.|KAFKA_CONSUMER_|INGESTER_)`)
	ofCollector = regexp.MustCompile(`^(--?span-storage\.type|SPAN_STORAGE_TYPE)=kafka$`)
)

// presetFor returns the preset for flags or variables of an unnamed program.
func presetFor(settings []string) string {
	switch {
	case slices.ContainsFunc(settings, ofIngester.MatchString):
		return "ingester"
	case slices.ContainsFunc(settings, ofCollector.MatchString):
		return "collector"
	}
	return "all-in-one"
}

// readEnv parses lines NAME=value. Empty lines and comments are skipped.
func readEnv(text string) (environ []string, ok bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := variableLine.FindStringSubmatch(line)
		if m == nil {
			return nil, false
		}
		environ = append(environ, m[1]+"="+unquote(m[2]))
	}
	return environ, len(environ) > 0
}

func unquote(text string) string {
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(text, quote); ok && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return text
}

// flatten returns a tree of flags, whose keys are joined by dots, as arguments.
func flatten(n *yaml.Node, prefix string) (args []string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := prefix+n.Content[i].Value, n.Content[i+1]
		switch v.Kind {
		case yaml.MappingNode:
			args = append(args, flatten(v, name+".")...)
		case yaml.SequenceNode:
			args = append(args, "--"+name+"="+strings.Join((&block{node: n}).texts(n.Content[i].Value), ","))
		default:
			args = append(args, "--"+name+"="+v.Value)
		}
	}
	return args
}

// shellWords splits a command line like a shell, without expansions. Comments are skipped.
func shellWords(text string) (words []string, err error) {
	var word strings.Builder
	inWord := false
	var quote rune
	runes := []rune(text)
	flush := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'':
			word.WriteRune(r)
		case r == '\\' && i+1 < len(runes):
			i++
			if runes[i] != '\n' && runes[i] != '\r' {
				word.WriteRune(runes[i])
				inWord = true
			}
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			flush()
		case r == '#' && !inWord:
			for i+1 < len(runes) && runes[i+1] != '\n' {
				i++
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("quote %c is not closed", quote)
	}
	flush()
	return words, nil
}

// readCommandLine returns the program that a command line starts. Words before its name, such as
// `docker run`, may set variables.
func readCommandLine(words []string) *jaeger1Program {
	isProgram := func(word string) bool {
		_, ok := presetOf(word)
		return ok
	}
	i := slices.IndexFunc(words, func(word string) bool { return strings.Contains(word, "/") && isProgram(word) })
	if i < 0 { // not an image, before which `--name` may name a container
		i = slices.IndexFunc(words, isProgram)
	}
	if i < 0 {
		return &jaeger1Program{preset: presetFor(words), args: words}
	}
	preset, _ := presetOf(words[i])
	environ, rest := variablesOf(words[:i])
	p := &jaeger1Program{preset: preset, environ: environ, args: words[i+1:]}
	if len(rest) > 0 {
		p.lists = append(p.lists, listing{dropped, []string{strings.Join(rest, " ")}, "options of the container"})
	}
	return p
}

// variablesOf returns the variables that words set: NAME=value, alone or after -e, --env and -e=,
// and the other words.
func variablesOf(words []string) (environ, rest []string) {
	for _, word := range words {
		variable := strings.TrimPrefix(strings.TrimPrefix(word, "--env="), "-e=")
		switch {
		case variableLine.MatchString(variable):
			environ = append(environ, variable)
		case word != "-e" && word != "--env":
			rest = append(rest, word)
		}
	}
	return environ, rest
}

// programName matches the name of a program or image of Jaeger 1, and of the presets.
var programName = regexp.MustCompile(`(?:^|/)(?:jaeger-?|jaegertracing-)?(all-in-one|agent|collector|ingester|query|remote-storage)` +
	`(?:-linux|-debug)?(?:-(?:amd64|arm64|s390x|ppc64le))?(?:[:@].*)?$`)

// presetOf returns the preset that replaces a program, given by its path or image.
func presetOf(word string) (preset string, ok bool) {
	m := programName.FindStringSubmatch(word)
	if m == nil || strings.HasPrefix(word, "-") {
		return "", false
	}
	if m[1] == "remote-storage" {
		return "collector", true
	}
	return m[1], true
}
