package scan

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// namedSource is a source that only has a name.
type namedSource struct{ source.Source }

func (namedSource) Name() string { return "segment 3" }

func TestDamageReasons(t *testing.T) {
	src := namedSource{}
	var reported []*source.DamageError
	d := damage{report: func(e *source.DamageError) { reported = append(reported, e) }}
	other := errors.New("the disk is gone")
	joined := errors.Join(&source.DamageError{File: "seg/a", Part: "block 1", Rows: 10, Err: other},
		errors.Join(&source.DamageError{File: "seg/b", Part: "block 2", Err: other}, other))
	if err := d.note(src, "block 2", 5, joined); !errors.Is(err, other) || errors.As(err, new(*source.DamageError)) {
		t.Errorf("note returned %v, want the error that is not damage", err)
	}
	if err := d.note(src, "block 7", 3, ErrReference); err != nil {
		t.Errorf("note of a corrupt row returned %v, want nil", err)
	}
	if err := d.note(src, "block 2", 5, &source.DamageError{File: "seg/a", Part: "block 1", Rows: 10, Err: other}); err != nil {
		t.Errorf("note of known damage returned %v, want nil", err)
	}
	if len(reported) != 3 || !errors.Is(reported[2], rows.ErrCorrupt) || reported[2].File != "segment 3" {
		t.Errorf("reports: %v, want three, the last one of segment 3", reported)
	}
	if got := d.reasons().Text(); !strings.Contains(got, "18 spans") || !strings.Contains(got, "seg/a, seg/b, segment 3") {
		t.Errorf("reason is %q, want 18 spans of three files", got)
	}
}
