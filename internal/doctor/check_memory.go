package doctor

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/tracing-backend/tracing/pipeline/app"
)

// checkMemory compares the memory that the limits of the configuration add up to with that of the
// cgroup, GOMEMLIMIT and the machine.
func checkMemory(_ context.Context, x *examination) []Finding {
	built, err := app.New(x.config, app.Options{Log: io.Discard, Build: x.build})
	if err != nil {
		return []Finding{newFinding("", Problem, "configuration cannot be built: %v", err).advise("run \"tracing validate\"")}
	}
	n := built.MemoryNeeds()
	const advice = "raise the limit, or lower service::limits, memtables, caches and queues"
	text := fmt.Sprintf("limits of the configuration add up to %s", size(n.Needed))
	switch {
	case n.GOMEMLIMIT > n.Cgroup:
		return []Finding{newFinding("", Problem, "GOMEMLIMIT (%s) is above the limit of the cgroup (%s): the kernel kills the process first",
			size(n.GOMEMLIMIT), size(n.Cgroup)).advise("unset GOMEMLIMIT; the program adjusts itself to the cgroup")}
	case n.Needed > n.Available && n.GOMEMLIMIT > 0:
		return []Finding{newFinding("", Problem, "%s, GOMEMLIMIT allows %s", text, size(n.Available)).advise(advice)}
	case n.Needed > n.Available:
		return []Finding{newFinding("", Problem, "%s, the cgroup allows the program %s", text, size(n.Available)).advise(advice)}
	case n.Needed > n.Machine:
		return []Finding{newFinding("", Warning, "%s, the machine has %s", text, size(n.Machine)).advise(advice)}
	case n.Available == math.MaxInt64:
		return []Finding{newFinding("", OK, "%s, the machine has %s, and no cgroup limits it", text, size(n.Machine))}
	}
	return []Finding{newFinding("", OK, "%s, %s may be used", text, size(n.Available))}
}
