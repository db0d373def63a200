// Package schema implements the commands `tracing clickhouse schema ...`, which print, create and
// examine the tables of the `clickhouse` exporter.
package schema

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// Commands returns the commands.
func Commands() []commands.Command {
	command := func(name string, do action, doc, example string) commands.Command {
		return commands.Command{Name: "clickhouse schema " + name, Args: "[PRESET] [flags] [--exporter ID]", Group: "span stores",
			Configured: true, Preset: "collector-clickhouse", Doc: doc + "; uses the preset collector-clickhouse unless PRESET or --config is given",
			Examples: []string{"tracing clickhouse schema " + name + " collector-clickhouse --config my.yaml" + example}, Setup: setup(do)}
	}
	return []commands.Command{
		command("print", printStatements,
			"print the statements that create the tables of the clickhouse exporter; connects to no server", " > tables.sql"),
		command("apply", apply,
			"create missing tables of the clickhouse exporter, upgrade old ones, and change their retention", ""),
		command("check", check,
			"report missing tables and unsuitable settings of a ClickHouse server; exits with 1 if there is a problem", ""),
	}
}

// action is what a command does with the tables of a configuration.
type action func(ctx context.Context, t *clickhouse.Tables, out io.Writer) error

func setup(do action) func(*flag.FlagSet) func(context.Context, commands.Invocation) error {
	return func(fs *flag.FlagSet) func(context.Context, commands.Invocation) error {
		exporter := fs.String("exporter", "", "ID of the exporter if the configuration has several, such as clickhouse/archive.")
		return func(ctx context.Context, in commands.Invocation) error {
			config, ok := in.Configuration.(*app.Config)
			if !ok {
				return errors.New("configuration is not the one of this program")
			}
			c, err := choose(config, *exporter)
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

// choose returns the configuration of the exporter with an id, or of the only exporter if the id is
// "".
func choose(c *app.Config, exporter string) (*clickhouse.Config, error) {
	var ids []string
	var chosen *clickhouse.Config
	for _, component := range c.Sorted() {
		value, ok := component.Value.(*clickhouse.Config)
		id := component.Key.ID.String()
		if !ok || exporter != "" && id != exporter {
			continue
		}
		ids, chosen = append(ids, id), value
	}
	switch {
	case len(ids) == 1:
		return chosen, nil
	case len(ids) > 1:
		return nil, commands.BadUsage("configuration has the exporters %s; name one with --exporter", strings.Join(ids, ", "))
	case exporter != "":
		return nil, commands.BadUsage("configuration has no exporter %q of the type clickhouse", exporter)
	}
	return nil, commands.BadUsage("configuration has no exporter of the type clickhouse")
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

// check prints its findings, and returns an error if there is a problem.
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
