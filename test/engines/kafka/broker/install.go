package broker

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Version is the version of the brokers in pom.xml.
const Version = "4.1.0"

//go:embed pom.xml
var pom []byte

// marker is the file that exists in the folder of a complete installation.
const marker = "pom.xml"

// Folder returns the cache folder of the jars, whether it exists or not.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "tracing-engines", "kafka-"+Version), nil
}

// Installed returns nil if brokers can be started, and otherwise an error that says what is
// missing.
func Installed() error {
	folder, err := Folder()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, marker)); err != nil {
		return errors.New(`kafka ` + Version + ` is not installed in the cache folder; run "make test-engines"`)
	}
	if _, err := exec.LookPath("java"); err != nil {
		return errors.New("java is not installed, which Kafka needs; install a Java runtime of version 17 or later")
	}
	return nil
}

// Install downloads the jars with Maven into [Folder], unless that is done. Progress goes to log.
func Install(ctx context.Context, log io.Writer) error {
	if Installed() == nil {
		return nil
	}
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed; the Kafka brokers need Java 17 or later and Maven", tool)
		}
	}
	folder, err := Folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(folder), "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := os.WriteFile(filepath.Join(temporary, marker), pom, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(log, "downloading Kafka %s from Maven Central\n", Version)
	mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars")
	mvn.Dir, mvn.Stdout, mvn.Stderr = temporary, log, log
	if err := mvn.Run(); err != nil {
		return fmt.Errorf("mvn dependency:copy-dependencies: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Rename(temporary, folder); err != nil && Installed() != nil { // another process may have been faster
		return err
	}
	return nil
}
