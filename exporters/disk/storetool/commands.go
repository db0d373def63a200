package storetool

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Commands returns the commands that work on the folder of the `disk` exporter.
func Commands() []commands.Command {
	t := tool{fs: vfs.OS()}
	const group = "span stores"
	const dir = "DIR is the folder of the store, or the data_dir above it"
	return []commands.Command{
		{Name: "store inspect", Args: "DIR [--columns] [--top N] [--json]", Group: group, Setup: t.inspect,
			Examples: []string{"tracing store inspect data", "tracing store inspect data --columns --top 10"},
			Doc:      "show the contents of a span store, file by file; works while the store is in use; " + dir},
		{Name: "store verify", Args: "DIR [--json]", Group: group, Setup: t.verify,
			Examples: []string{"tracing store verify data"},
			Doc:      "read and check every byte of a span store; works while the store is in use; exits with 1 if it is damaged"},
		{Name: "store repair", Args: "DIR [--dry-run] [--json]", Group: group, Setup: t.repair,
			Examples: []string{"tracing store repair data --dry-run", "tracing store repair data"},
			Doc:      "rewrite damaged segments without their unreadable parts; stop the server first"},
		{Name: "store export", Args: "DIR --format parquet|otlp-json|otlp-proto --output DIR [flags]", Group: group, Setup: t.export,
			Examples: []string{"tracing store export data --format parquet --output spans --from 2026-11-21"},
			Doc:      "copy spans to files for other tools; works while the store is in use"},
		{Name: "store load", Args: "DIR [--endpoint URL] [flags]", Group: group, Setup: t.load,
			Examples: []string{"tracing store load spans --endpoint http://collector:4318"},
			Doc: "send the files of store export --format otlp-proto to an OTLP receiver, for example to move spans to another store; " +
				"continues where an interrupted run stopped"},
	}
}

// tool holds what all commands share.
type tool struct{ fs vfs.FS }

type runner = func(context.Context, commands.Invocation) error

// oneDir returns the only positional argument, a folder.
func oneDir(in commands.Invocation) (string, error) {
	if len(in.Args) != 1 {
		return "", commands.BadUsage("expected one folder as argument, got %d", len(in.Args))
	}
	return slashes(in.Args[0]), nil
}

func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// defaultTop is the default of inspect --top.
const defaultTop = 40

func (t tool) inspect(fs *flag.FlagSet) runner {
	columns := fs.Bool("columns", false, "Also print the size of each section, column and attribute. Reads all blocks.")
	top := fs.Int("top", defaultTop, "Number of sections, columns and attributes that --columns prints, largest first. 0 prints all.")
	asJSON := fs.Bool("json", false, "Print JSON.")
	return func(ctx context.Context, in commands.Invocation) error {
		dir, err := oneDir(in)
		if err != nil {
			return err
		}
		s, err := openSnapshot(t.fs, dir, false)
		if err != nil {
			return err
		}
		defer s.close()
		found, err := inspect(ctx, s, *columns)
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(in.Stdout, found)
		}
		return found.write(in.Stdout, *top)
	}
}

func (t tool) verify(fs *flag.FlagSet) runner {
	asJSON := fs.Bool("json", false, "Print JSON.")
	return func(ctx context.Context, in commands.Invocation) error {
		dir, err := oneDir(in)
		if err != nil {
			return err
		}
		s, read, err := openCounted(t.fs, dir, false)
		if err != nil {
			return err
		}
		defer s.close()
		v, err := verify(ctx, s, read, in.Stderr)
		if err != nil {
			return err
		}
		if *asJSON {
			err = writeJSON(in.Stdout, v)
		} else {
			v.write(in.Stdout)
		}
		if err == nil && len(v.Damage) > 0 {
			err = fmt.Errorf("found %d damaged places; see docs/store.md for how to repair them", len(v.Damage))
		}
		return err
	}
}
