package failure

import (
	"regexp"
	"slices"
	"strings"
)

// Limits on the part of a stack trace that is examined.
const (
	maxStack  = 64 << 10 // bytes
	maxFrames = 200
)

// Frame is where the code of a stack trace is.
type Frame struct {
	function string // "" if the language does not print it
	file     string // base name, or ""
	library  bool   // known not to belong to the application
	// Like is a regular expression for a part of the line.
	Like string
}

// String returns the frame for people.
func (f Frame) String() string {
	switch {
	case f.function == "":
		return f.file
	case f.file == "":
		return f.function
	}
	return f.function + " (" + f.file + ")"
}

// language reads the frames of one language.
type language struct {
	hint string // occurs in every stack trace of the language
	line *regexp.Regexp
	// frame returns the frame of a line that matches. next is the line after it.
	frame func(match []string, next string) Frame
	// newestLast reports whether the innermost call is at the end.
	newestLast bool
}

// languages returns the languages in the order in which they are tried. The first language that
// recognizes a line of a trace determines its format.
func languages() [8]language {
	const at = "at "
	return [...]language{
		{`File "`, pythonLine, pythonFrame, true}, {at, javaLine, javaFrame, false}, {at, dotnetLine, dotnetFrame, false},
		{at, scriptLine, scriptFrame, false}, {"#0 ", phpLine, phpFrame, false}, {":in ", rubyLine, rubyFrame, false},
		{".go:", goLine, goFrame, false}, {"@", firefoxLine, scriptFrame, false},
	}
}

// Patterns for the lines of frames. All are anchored and run in linear time.
var (
	pythonLine  = regexp.MustCompile(`^\s*File "([^"]+)", line \d+(?:, in (.+))?$`)
	dotnetLine  = regexp.MustCompile(`^\s*at ([\w.<>$|+,\[\]` + "`" + `]+?)(?:\[[^\]]*\])?\([^()]*\)(?: in (.+):line \d+)?\s*$`)
	javaLine    = regexp.MustCompile(`^\s*at (?:[\w.@-]*/{1,2})?([\w.$<>/-]+)\((?:([\w$-]+\.\w+)(?::\d+)?|Native Method|Unknown Source)\)`)
	scriptLine  = regexp.MustCompile(`^\s*at (?:async )?(?:(new [\w.$<>]+|[\w.$<>#\[\] ]+) \()?((?:\w+:)?[^\s():]+):\d+(?::\d+)?\)?$`)
	firefoxLine = regexp.MustCompile(`^([\w.$<>/*]*)@(\S+?):\d+(?::\d+)?$`)
	phpLine     = regexp.MustCompile(`^#\d+ (?:(.+)\(\d+\)|\[internal function\]): (.+?)\(.*$`)
	rubyLine    = regexp.MustCompile("^\\s*(?:from )?([^\\s:]+):\\d+:in [`'](.+)'$")
	goLine      = regexp.MustCompile(`^(?:created by )?([\w./%*()\-·\[\]]+?)(?:\((?:0x|\.\.\.|\{|\)).*|\(\)| in goroutine \d+)$`)
	goFile      = regexp.MustCompile(`^\s+(\S+\.\w+):\d+`)
)

// TopFrame returns the innermost frame of a stack trace, preferably one of the application. It is
// empty if the format of the trace is unknown.
func TopFrame(stack string) Frame {
	stack = cut(stack, maxStack)
	lines := strings.Split(stack, "\n")
	for _, l := range languages() {
		if !strings.Contains(stack, l.hint) {
			continue
		}
		if f := l.top(lines); f != (Frame{}) {
			f.Like = string([]rune(f.Like)) // each invalid byte matches U+FFFD
			return f
		}
	}
	return Frame{}
}

// top returns the innermost frame that is not in a library, or else the innermost one.
func (l *language) top(lines []string) (first Frame) {
	found := 0
	for n := range lines {
		i := n
		if l.newestLast {
			i = len(lines) - 1 - n
		}
		f := l.read(lines, i)
		switch {
		case f == (Frame{}):
			continue
		case !f.library:
			return f
		case first == (Frame{}):
			first = f
		}
		if found++; found == maxFrames {
			break
		}
	}
	return first
}

// read returns the frame of a line, or none.
func (l *language) read(lines []string, i int) Frame {
	match := l.line.FindStringSubmatch(strings.TrimSuffix(lines[i], "\r"))
	if match == nil {
		return Frame{}
	}
	if i++; i < len(lines) {
		return l.frame(match, lines[i])
	}
	return l.frame(match, "")
}

// quoteParts returns a regular expression for literal texts in this order.
func quoteParts(parts ...string) string {
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return strings.Join(parts, ".*")
}

// baseName returns the last name of a path or URL.
func baseName(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

func hasAnyPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

func pythonFrame(m []string, _ string) Frame {
	function := m[2]
	if function == "<module>" {
		function = ""
	}
	library := hasAnyPrefix(m[1], "<", "/usr/lib/python", "/usr/local/lib/python") ||
		containsAny(m[1], "site-packages", "dist-packages", "/lib/python3")
	return Frame{function, baseName(m[1]), library, regexp.QuoteMeta(baseName(m[1])) + `", line \d+, in ` + regexp.QuoteMeta(m[2])}
}

var (
	javaLambda    = regexp.MustCompile(`\$\$Lambda\S*|\$\$(?:Enhancer|Fast|Spring)\w*(?:\$\$\w+)*|\$\d+\b`)
	javaLibraries = []string{"java.", "javax.", "jakarta.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.", "scala.", "akka.",
		"groovy.", "org.springframework.", "org.apache.", "org.hibernate.", "org.eclipse.", "org.jboss.",
		"org.postgresql.", "org.junit.", "io.netty.",
		"io.grpc.", "io.opentelemetry.", "io.vertx.", "io.micrometer.", "io.quarkus.", "reactor.", "rx.", "okhttp3.", "com.fasterxml.",
		"com.google.common.", "com.mysql.", "com.zaxxer.", "com.netflix.", "feign."}
)

func javaFrame(m []string, _ string) Frame {
	return Frame{javaLambda.ReplaceAllLiteralString(m[1], ""), m[2], hasAnyPrefix(m[1], javaLibraries...),
		quoteParts(javaLambda.Split(m[1], -1)...)}
}

var (
	dotnetAsync     = regexp.MustCompile(`\.?<(\w+)>[\w|]*(?:\.MoveNext)?`)
	dotnetLibraries = []string{"System.", "Microsoft.", "Grpc.", "Npgsql.", "Newtonsoft.", "OpenTelemetry.", "StackExchange.",
		"MassTransit.", "Polly."}
)

// dotnetFrame also accepts lines without a file, which other languages do not print.
func dotnetFrame(m []string, _ string) Frame {
	parts := dotnetAsync.Split(m[1], -1)
	if name := dotnetAsync.FindStringSubmatch(m[1]); name != nil {
		parts = []string{parts[0], name[1]}
	}
	return Frame{dotnetAsync.ReplaceAllString(m[1], ".$1"), baseName(m[2]), hasAnyPrefix(m[1], dotnetLibraries...), quoteParts(parts...)}
}

var scriptHash = regexp.MustCompile(`[.-][0-9a-f]{6,}(\.)`)

func scriptFrame(m []string, _ string) Frame {
	function := strings.TrimPrefix(strings.TrimPrefix(m[1], "new "), "Object.")
	if strings.Contains(function, "<anonymous>") {
		function = ""
	}
	library := containsAny(m[2], "node_modules", "internal/") || hasAnyPrefix(m[2], "node:")
	like := quoteParts(scriptHash.Split(baseName(m[2]), -1)...)
	if function != "" {
		like = regexp.QuoteMeta(function)
	}
	return Frame{function, scriptHash.ReplaceAllString(baseName(m[2]), "$1"), library, like}
}

func phpFrame(m []string, _ string) Frame {
	return Frame{m[2], baseName(m[1]), m[1] == "" || strings.Contains(m[1], "/vendor/"), regexp.QuoteMeta(m[2])}
}

func rubyFrame(m []string, _ string) Frame {
	function := m[2]
	for _, prefix := range []string{"block in ", "rescue in ", "ensure in "} {
		function = strings.TrimPrefix(function, prefix)
	}
	return Frame{function, baseName(m[1]), containsAny(m[1], "/gems/", "/lib/ruby/", "<internal:"), regexp.QuoteMeta(function)}
}

var goStandard = []string{"runtime.", "runtime/", "testing.", "net/http.", "reflect.", "sync.", "database/sql.", "encoding/", "panic"}

func goFrame(m []string, next string) Frame {
	file := goFile.FindStringSubmatch(next)
	if file == nil {
		return Frame{}
	}
	function := m[1][strings.LastIndexByte(m[1], '/')+1:]
	library := hasAnyPrefix(m[1], goStandard...) || containsAny(file[1], "/go/src/", "/pkg/mod/", "/vendor/", "/libexec/src/")
	return Frame{function, baseName(file[1]), library, regexp.QuoteMeta(function)}
}
