package storetool

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// formats are the formats of an export by their names.
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
	fs.StringVar(&f.format, "format", "", "parquet, otlp-json (a request a line) or otlp-proto (requests, each behind its length).")
	fs.StringVar(&f.out, "out", "", "Folder to write to; it is made, or must be empty.")
	fs.StringVar(&f.from, "from", "", "Spans that start then or later: 2026-11-21T17:00:00Z, or 2026-11-21.")
	fs.StringVar(&f.to, "to", "", "Spans that start before then.")
	fs.StringVar(&f.tenant, "tenant", "", "Only of this tenant.")
	fs.StringVar(&f.service, "service", "", "Only of this service.")
}

// check reads what the flags say.
func (f *exportFlags) check() (sel selection, make func() format, err error) {
	make, ok := formats()[f.format]
	if !ok {
		return sel, nil, pipeline.BadUsage("--format is parquet, otlp-json or otlp-proto, not %q", f.format)
	}
	if f.out == "" {
		return sel, nil, pipeline.BadUsage("--out is missing: the folder to write to")
	}
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"from", f.from, &sel.from}, {"to", f.to, &sel.to}} {
		if *t.to, err = readTime(t.text); err != nil {
			return sel, nil, pipeline.BadUsage("--%s: %q is no time; write 2026-11-21T17:00:00Z, or 2026-11-21", t.flag, t.text)
		}
	}
	if !sel.to.IsZero() && !sel.from.Before(sel.to) {
		return sel, nil, pipeline.BadUsage("--from %s is not before --to %s", f.from, f.to)
	}
	f.flags.Visit(func(g *flag.Flag) {
		if g.Name == "tenant" { // the empty one is a tenant, too
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
	return func(ctx context.Context, in pipeline.Invocation) error {
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
		s, err := look(t.fs, dir, true)
		if err != nil {
			return err
		}
		defer s.close()
		w, err := export(ctx, s, sel, out, in.Stderr)
		if err != nil {
			return err
		}
		fmt.Fprintf(in.Stdout, "%d spans in %d files (%s) below %s; %d duplicates left out\n", out.Spans, out.Files, size(out.Bytes), out.dir, w.duplicates)
		return w.complain(in.Stderr)
	}
}

// export copies the selected spans of a snapshot.
func export(ctx context.Context, s *snapshot, sel selection, out *partitions, progressTo io.Writer) (*walker, error) {
	w := &walker{selection: sel, sources: s.sources(), ordered: len(s.segments), emit: out.add}
	total := int64(0)
	for _, src := range w.sources {
		n, _, _ := src.Bounds()
		total += int64(n)
	}
	w.step = newProgress(progressTo, "export", total, func() int64 { return w.passed }, spans, time.Now).step
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

func spans(n int64) string { return fmt.Sprintf("%d spans", n) }

// complain says what is missing.
func (w *walker) complain(out io.Writer) error {
	if len(w.damage) == 0 {
		return nil
	}
	v := Verification{Damage: w.damage}
	v.writeDamage(out)
	return fmt.Errorf("%d places of the store are damaged; as far as it is known, %d spans are missing from the export", len(w.damage), w.lost)
}

// slashes returns a path as package vfs has them.
func slashes(name string) string { return filepath.ToSlash(name) }
