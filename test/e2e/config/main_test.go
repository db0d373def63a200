// Package config_test checks how the program reads configurations: files, presets, flags and
// variables of established tools, and the configurations of other tools, which it migrates.
package config_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup)) }
