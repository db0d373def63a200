package doctor

import (
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkUDP compares the buffers that UDP listeners ask for with what the kernel grants.
func checkUDP(_ context.Context, x *examination) []Finding {
	var found []Finding
	for i := range x.listeners {
		if l := &x.listeners[i]; l.network == "udp" && l.buffer > 0 {
			found = append(found, udpBuffer(l))
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no UDP listeners with socket_buffer in the configuration"))
	}
	return found
}

func udpBuffer(l *listener) Finding {
	granted, err := grantedBuffer(l.buffer)
	text := fmt.Sprintf("kernel grants %s of the %s in socket_buffer", size(int64(granted)), pipeline.ByteSize(l.buffer))
	switch {
	case err != nil:
		return newFinding(l.String(), Skipped, "cannot measure the buffer: %v", err)
	case granted < l.buffer:
		return newFinding(l.String(), Warning, "%s; bursts of datagrams are dropped earlier", text).
			advise("run \"sysctl -w net.core.rmem_max=%d\" on the host, and write it to /etc/sysctl.d", l.buffer)
	}
	return newFinding(l.String(), OK, "%s", text)
}
