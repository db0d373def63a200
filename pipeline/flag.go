package pipeline

import "strings"

// Flag is a command-line flag that sets a key of a component's configuration. [Factory.Flags] adds
// it to a factory. Each flag is also an environment variable, see [Flag.Env]. If several components
// have a flag of the same name, it applies to each of them that is configured.
type Flag struct {
	Name string // without dashes: `collector.otlp.grpc.host-port`
	Doc  string // one sentence
	// Variable is the name of the environment variable, if it is not derived from the name of the
	// flag.
	Variable string
	// Key is the path below the component that the flag sets, joined by `::`. A flag without Key
	// switches the component itself: false removes it from all pipelines and from
	// service.extensions.
	Key string
	// Block is the path, below the component, of a block that must be configured for the flag to
	// have an effect; "" is the component. If the block is not configured, the flag is an error and
	// the environment variable a warning. If Missing is set, it is the message, and both are
	// errors.
	Block, Missing string
	// Optional makes the flag a warning if no other flag or source configures Block; the text says
	// why the flag has no effect.
	Optional string
	// Unless is the path, below the component, of a boolean key. If the key is true, the flag is an
	// error with the message Missing.
	Unless string
	// Presence makes the flag a switch for the block Key: true adds the block with its defaults,
	// false removes it.
	Presence bool
	// Adds makes the flag add a component with this key if no component of the type is configured.
	// The component is added to the pipeline `traces`, or to the only pipeline: a receiver after
	// the other receivers, a processor before the other processors. An empty value removes the
	// component. If the flag, in this or another factory, sets a [Ref] to a component that is not
	// configured, the Ref is set to the only suitable component instead.
	Adds bool
	// Selects says that Value decides whether the block Key is added: it returns an empty struct
	// for the block with its defaults, a map for one with some keys, or nil. Flags for keys of the
	// block take effect afterwards.
	Selects bool
	// Value converts the text to a string, bool, number, []string or map[string]string, which
	// becomes the value of the key. A nil Value keeps the text. Value may return nil: that removes
	// the key or, if the flag Adds or Selects, adds nothing.
	Value func(text string) (any, error)
	// Switch allows the flag without a value, which means true.
	Switch bool
	// Instead makes this a flag that is accepted and only logs a warning. The text says what
	// replaces the flag.
	Instead string
	// Always is the value that describes what the program does anyway. A flag with Instead and this
	// value is accepted without a warning.
	Always string
	// Refused makes the flag an error, because ignoring it would lose spans; the text says what to
	// do instead. The environment variable only logs a warning, because other programs may use it.
	Refused string
	// Family is the prefix by which help and reference documentation group flags: `es` for `es.*`.
	Family string
	// CommandLine says that the flag has no environment variable.
	CommandLine bool
	// Whole makes this a flag of the whole configuration: Key begins at its root, and the flag has
	// no other relation to its factory.
	Whole bool
	// Apply is called instead of setting a Key. It is called after flags that add components.
	Apply func(c FlagTarget, text string)
	// Distinctive is a prefix of the flag's variable that hardly any other program uses. Unknown
	// variables with this prefix are reported even if they do not resemble a known one.
	Distinctive string
}

// FlagTarget is the configuration that a flag is applied to: presets and files, with the components
// that other flags have added. Changes take effect together, after the flag.
type FlagTarget interface {
	// Has reports whether there is a key at path.
	Has(path ...string) bool
	// Set sets the key at path to a value as [Flag.Value] returns it.
	Set(value any, path ...string)
	// Remove removes a component from the configuration and from all lists.
	Remove(kind Kind, id ID)
	// Exporters returns the types of exporters that the program has, and those that are configured.
	Exporters() (known, configured []string)
	// Store describes the store of the configuration: the exporters that other components read.
	Store() FlagStore
	// ReplaceStore replaces the store in pipelines by exporters of the types writeTo and, if
	// readFrom is given, in components that read it by an exporter of that type. An existing
	// exporter with one of these types keeps its name and settings. If a type is unsuitable,
	// ReplaceStore reports a problem, changes nothing, and returns false.
	ReplaceStore(writeTo []string, readFrom ...string) (ok bool)
	// With returns the flag, or its environment variable, with another value, for messages.
	With(text string) string
	// Problem reports a mistake, and Warn a warning.
	Problem(format string, args ...any)
	Warn(format string, args ...any)
	// Absent reports that the flag applies to something that is not configured. For an environment
	// variable, which other programs may use as well, it is only a warning.
	Absent(format string, args ...any)
	// Explains reports whether the result is a file for the user that lists all problems. In that
	// case a flag with a problem is applied as far as possible.
	Explains() bool
}

// FlagStore is the store of a [FlagTarget].
type FlagStore struct {
	Readers  []FlagReader // without any, there is no store
	Expected string       // what they need, in the user's words: `a store`
	Written  bool         // a pipeline ends in it
}

// FlagReader is a component that reads the store.
type FlagReader struct {
	Kind Kind
	ID   ID
}

var variableName = strings.NewReplacer("-", "_", ".", "_")

// Env returns the name of the environment variable: Variable, or the name of the flag in upper
// case, with `_` for `-` and `.`.
func (f Flag) Env() string {
	if f.Variable != "" {
		return f.Variable
	}
	return variableName.Replace(strings.ToUpper(f.Name))
}
