package image_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) {
	os.Setenv("CGO_ENABLED", "0") //nolint:errcheck // for the program that harness builds: the image has no libraries
	goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup))
}
