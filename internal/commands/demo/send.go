package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/internal/demo"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// send sends traces until the run ends, and says what happens.
func send(ctx context.Context, o demo.Options, in commands.Invocation) error {
	fmt.Fprintf(in.Stdout, "sending the traces of a shop of ten services to %s: %v requests/s, seed %d\n", o.OTLP, o.Rate, o.Seed)
	began := o.Now()
	o.Backfilled = func(s demo.Summary) {
		if o.Backfill > 0 {
			fmt.Fprintf(in.Stdout, "the last %s: %s, in %s\n", o.Backfill, s, o.Now().Sub(began).Round(100*time.Millisecond))
		}
		fmt.Fprintf(in.Stdout, "payment %s, a bad version: %s\n", s.Version, s.Deployed.Format(time.TimeOnly))
		if !o.Once {
			fmt.Fprintln(in.Stdout, "sending what happens now; press Ctrl C to stop")
		}
	}
	s, err := demo.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("nothing was acknowledged: %w; start the program with \"tracing\", set --otlp, or pass --all-in-one", err)
	}
	fmt.Fprintln(in.Stdout, "in total:", s)
	if lost := s.Spans - s.Acknowledged; lost > 0 {
		return fmt.Errorf("%d of %d spans were not acknowledged", lost, s.Spans)
	}
	return nil
}
