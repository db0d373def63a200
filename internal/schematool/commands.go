// Package schematool holds the commands `tracing clickhouse schema ...`, which print, create and
// examine the tables of the exporter "clickhouse".
package schematool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// Commands returns the commands. They load configurations with the given components and presets.
func Commands(components func() []pipeline.Factory, presets func() []app.Preset) []pipeline.Command {
	t := tool{components: components, presets: presets}
	const group, args = "span stores", "[PRESET] [--config FILE] [--set KEY=VALUE] [--exporter ID]"
	return []pipeline.Command{
		{Name: "clickhouse schema print", Args: args, Group: group, Setup: t.command(printStatements),
			Examples: []string{"tracing clickhouse schema print collector-clickhouse --config my.yaml > tables.sql"},
			Doc:      "print the statements that create the tables of the exporter clickhouse; connects to no server"},
		{Name: "clickhouse schema apply", Args: args, Group: group, Setup: t.command(apply),
			Examples: []string{"tracing clickhouse schema apply collector-clickhouse --config my.yaml"},
			Doc:      "create missing tables of the exporter clickhouse, upgrade old ones, and change their retention"},
		{Name: "clickhouse schema check", Args: args, Group: group, Setup: t.command(check),
			Examples: []string{"tracing clickhouse schema check collector-clickhouse --config my.yaml"},
			Doc:      "report missing tables and unsuitable settings of a ClickHouse server; exits with 1 if there is a problem"},
	}
}

type tool struct {
	components func() []pipeline.Factory
	presets    func() []app.Preset
}

// action is what a command does with the tables of a configuration.
type action func(ctx context.Context, t *clickhouse.Tables, out io.Writer) error

func (t tool) command(do action) func(*flag.FlagSet) func(context.Context, pipeline.Invocation) error {
	return func(fs *flag.FlagSet) func(context.Context, pipeline.Invocation) error {
		l := &loader{tool: t}
		fs.Func("config", "Configuration file with the exporter. May be repeated; later files override earlier ones. "+
			"Without it and PRESET, the exporter has its defaults.", l.addFile)
		fs.Func("set", "Value of one key, such as exporters::clickhouse::database=traces. May be repeated.", l.addOverride)
		fs.StringVar(&l.exporter, "exporter", "", "ID of the exporter if the configuration has several, such as clickhouse/archive.")
		return func(ctx context.Context, in pipeline.Invocation) error {
			c, err := l.load(in.Args)
			if err != nil {
				return err
			}
			tables, err := clickhouse.OpenTables(c)
			if err != nil {
				return err
			}
			return errors.Join(do(ctx, tables, in.Stdout), tables.Close())
		}
	}
}

// loader loads the configuration of the exporter.
type loader struct {
	tool
	options  app.LoadOptions
	exporter string
}

func (l *loader) addFile(name string) error {
	l.options.Files = append(l.options.Files, name)
	return nil
}

func (l *loader) addOverride(text string) error {
	o, err := app.ParseSet(text)
	l.options.Overrides = append(l.options.Overrides, o)
	return err
}

// withDefaults is the configuration if none is named.
const withDefaults = `
receivers: {zipkin: {}}
exporters: {clickhouse: {}}
service: {pipelines: {traces: {receivers: [zipkin], exporters: [clickhouse]}}}
`

const defaultsName = "defaults"

func (l *loader) load(args []string) (*clickhouse.Config, error) {
	if len(args) > 1 {
		return nil, pipeline.BadUsage("expected at most one preset as argument, got %d", len(args))
	}
	l.options.Factories, l.options.Presets = l.components(), l.presets()
	switch {
	case len(args) == 1:
		l.options.Preset = args[0]
	case len(l.options.Files) == 0:
		l.options.Files = []string{defaultsName}
		l.options.ReadFile = func(name string) ([]byte, error) {
			if name == defaultsName {
				return []byte(withDefaults), nil
			}
			return os.ReadFile(name)
		}
	}
	c, err := app.Load(l.options)
	if err != nil {
		return nil, err
	}
	return l.choose(c)
}

// choose returns the configuration of the exporter that the flag names, or of the only one.
func (l *loader) choose(c *app.Config) (*clickhouse.Config, error) {
	var ids []string
	var chosen *clickhouse.Config
	for _, component := range c.Sorted() {
		value, ok := component.Value.(*clickhouse.Config)
		id := component.Key.ID.String()
		if !ok || l.exporter != "" && id != l.exporter {
			continue
		}
		ids, chosen = append(ids, id), value
	}
	switch {
	case len(ids) == 1:
		return chosen, nil
	case len(ids) > 1:
		return nil, pipeline.BadUsage("configuration has the exporters %s; name one with --exporter", strings.Join(ids, ", "))
	case l.exporter != "":
		return nil, pipeline.BadUsage("configuration has no exporter %q of the type clickhouse", l.exporter)
	}
	return nil, pipeline.BadUsage("configuration has no exporter of the type clickhouse")
}

func printStatements(_ context.Context, t *clickhouse.Tables, out io.Writer) error {
	for _, st := range t.Statements() {
		if _, err := fmt.Fprintf(out, "%s;\n\n", st.SQL); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, t *clickhouse.Tables, out io.Writer) error {
	done, err := t.Apply(ctx, t.Server)
	for _, st := range done {
		fmt.Fprintf(out, "%s;\n\n", st.SQL)
	}
	if err == nil {
		fmt.Fprintf(out, "-- ran %d statements; the tables have version %d\n", len(done), t.Version)
	}
	return err
}

// check prints what it finds, and returns an error if there is a problem.
func check(ctx context.Context, t *clickhouse.Tables, out io.Writer) error {
	found, err := t.Check(ctx, t.Server)
	problems := 0
	for _, f := range found {
		fmt.Fprintln(out, f)
		if f.Problem {
			problems++
		}
	}
	switch {
	case err != nil:
		return err
	case problems > 0:
		return fmt.Errorf("found %d problems", problems)
	}
	fmt.Fprintf(out, "tables have version %d and the settings of the server suit\n", t.Version)
	return nil
}
