// Package monitoring_test tests the files in deploy/monitoring.
package monitoring_test

import (
	"testing"

	"go.uber.org/goleak"
)

// root is the root folder of the repository.
const root = "../.."

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
