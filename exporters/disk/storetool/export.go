package storetool

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/tracing-backend/tracing/pipeline/commands"
)

// formats returns the export formats by name.
func formats() map[string]func() format {
	return map[string]func() format{
		"parquet":    parquetFormat,
		"otlp-json":  func() format { return otlpFormat(true) },
		"otlp-proto": func() format { return otlpFormat(false) },
	}
}

// exportFlags are the flags of `export`.
type exportFlags struct {
	format, out, from, to, tenant, service string
	flags                                  *flag.FlagSet
}

func (f *exportFlags) define(fs *flag.FlagSet) {
	f.flags = fs
	fs.StringVar(&f.format, "format", "",
		"Format of the files: parquet, otlp-json (one request per line) or otlp-proto (requests with a length prefix).")
	fs.StringVar(&f.out, "output", "", "Folder to write to. It must be empty and is created if it does not exist.")
	fs.StringVar(&f.from, "from", "", "Export only spans that start at or after this time, such as 2026-11-21T17:00:00Z or 2026-11-21.")
	fs.StringVar(&f.to, "to", "", "Export only spans that start before this time.")
	fs.StringVar(&f.tenant, "tenant", "", "Export only spans of this tenant.")
	fs.StringVar(&f.service, "service", "", "Export only spans of this service.")
}

// check validates the flags and returns the selected spans and the constructor of the format.
func (f *exportFlags) check() (sel selection, make func() format, err error) {
	make, ok := formats()[f.format]
	if !ok {
		return sel, nil, commands.BadUsage("--format must be parquet, otlp-json or otlp-proto, not %q", f.format)
	}
	if f.out == "" {
		return sel, nil, commands.BadUsage("--output is missing; name the folder to write to")
	}
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"from", f.from, &sel.from}, {"to", f.to, &sel.to}} {
		if *t.to, err = readTime(t.text); err != nil {
			return sel, nil, commands.BadUsage("--%s: cannot parse time %q; write it like 2026-11-21T17:00:00Z or 2026-11-21",
				t.flag, t.text)
		}
	}
	if !sel.to.IsZero() && !sel.from.Before(sel.to) {
		return sel, nil, commands.BadUsage("--from %s must be before --to %s", f.from, f.to)
	}
	f.flags.Visit(func(g *flag.Flag) {
		if g.Name == "tenant" { // an empty name selects the default tenant
			sel.tenant = &f.tenant
		}
	})
	sel.service = f.service
	return sel, make, nil
}

func readTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.Parse(time.DateOnly, text)
	}
	return t, err
}

func (t tool) export(fs *flag.FlagSet) runner {
	f := &exportFlags{}
	f.define(fs)
	return func(ctx context.Context, in commands.Invocation) error {
		dir, err := oneDir(in)
		if err != nil {
			return err
		}
		sel, make, err := f.check()
		if err != nil {
			return err
		}
		out, err := newPartitions(t.fs, slashes(f.out), make())
		if err != nil {
			return err
		}
		s, err := openSnapshot(t.fs, dir, true)
		if err != nil {
			return err
		}
		defer s.close()
		w, err := export(ctx, s, sel, out, in.Stderr)
		if err != nil {
			return err
		}
		fmt.Fprintf(in.Stdout, "exported %d spans to %d files (%s) in %s; skipped %d duplicates\n",
			out.Spans, out.Files, formatSize(out.Bytes), out.dir, w.duplicates)
		return w.reportDamage(in.Stderr)
	}
}

// export writes the selected spans of a snapshot to out. Progress lines go to progressTo.
func export(ctx context.Context, s *snapshot, sel selection, out *partitions, progressTo io.Writer) (*walker, error) {
	w := &walker{selection: sel, sources: s.sources(), ordered: len(s.segments), maxKnown: maxKnownSpans, emit: out.add}
	total := int64(0)
	for _, src := range w.sources {
		n, _, _ := src.Bounds()
		total += int64(n)
	}
	w.step = newProgress(progressTo, "export", total, func() int64 { return w.passed }, countSpans, time.Now).step
	v := &Verification{}
	v.unopened(s)
	w.damage, w.lost = v.Damage, v.lost()
	err := w.walk(ctx)
	if err == nil {
		err = out.close()
	}
	if err != nil {
		out.abandon()
		return nil, err
	}
	return w, nil
}

func countSpans(n int64) string { return fmt.Sprintf("%d spans", n) }

// reportDamage lists the damage that was found and returns an error if there is any.
func (w *walker) reportDamage(out io.Writer) error {
	if len(w.damage) == 0 {
		return nil
	}
	v := Verification{Damage: w.damage}
	v.writeDamage(out)
	return fmt.Errorf("export is incomplete: found %d damaged places; at least %d spans are missing", len(w.damage), w.lost)
}

// slashes returns a path with forward slashes, as package vfs expects it.
func slashes(name string) string { return filepath.ToSlash(name) }
