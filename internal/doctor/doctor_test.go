package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fullDisk takes no bytes.
type fullDisk struct{ vfs.FS }

func (d fullDisk) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	return fullFile{f}, err
}

type fullFile struct{ vfs.File }

func (fullFile) WriteAt([]byte, int64) (int, error) { return 0, syscall.ENOSPC }

// The file of the measurement is removed, also when the disk is full.
func TestSyncLeavesNoFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "doctor-1.tmp")
	times, err := measureSync(t.Context(), vfs.OS(), name)
	if err != nil || len(times) == 0 || len(times) > maxSyncs {
		t.Errorf("%d writes, %v", len(times), err)
	}
	if _, err := measureSync(t.Context(), fullDisk{vfs.OS()}, name); !vfs.NoSpace(err) {
		t.Errorf("on a full disk: %v", err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("file is left: %v", err)
	}
	slow := []time.Duration{time.Millisecond, 30 * time.Millisecond, 25 * time.Millisecond}
	if f := judgeSync("/data", "service::data_dir", slow); f.Verdict != Warning ||
		!strings.HasPrefix(f.Found, "median 25ms, longest 30ms of 3 writes") {
		t.Errorf("slow disk: %+v", f)
	}
	if f := judgeSync("/data", "service::data_dir", []time.Duration{time.Second}); f.Verdict != Problem || f.Advice == "" {
		t.Errorf("very slow disk: %+v", f)
	}
}

// A file of another program is neither overwritten nor removed.
func TestSyncKeepsOtherFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "doctor-1.tmp")
	if err := os.WriteFile(name, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := measureSync(t.Context(), vfs.OS(), name); !errors.Is(err, os.ErrExist) {
		t.Errorf("measured in a file that exists: %v", err)
	}
	if content, err := os.ReadFile(name); err != nil || string(content) != "other" {
		t.Errorf("file has %q, %v", content, err)
	}
}

// The answer of another host has whole seconds, and was made between two local times.
func TestSkew(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	f := func(there time.Duration, want Verdict, found string) {
		t.Helper()
		got := judgeSkew("url", at.Add(there), at, at.Add(100*time.Millisecond))
		if got.Verdict != want || !strings.Contains(got.Found, found) {
			t.Errorf("%s: %v, want %s with %q", there, got, want, found)
		}
	}
	f(0, OK, "agree")
	f(-time.Second, OK, "agree")
	f(-4*time.Second, Warning, "at least 3s")
	f(4*time.Second, Warning, "at least 3.9s")
	f(5*time.Minute, Problem, "at least 5m0s")
}

// A check that does not return ends with a problem, and the others still run.
func TestStuckCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := &examination{timeout: time.Second}
		found := x.runOne(t.Context(), check{name: "stuck", run: func(context.Context, *examination) []Finding {
			<-release
			return nil
		}})
		close(release)
		if len(found) != 1 || found[0].Verdict != Problem || found[0].Found != "no result within 1s" {
			t.Errorf("stuck check: %+v", found)
		}
	})
}

// Addresses of /proc/net have words of 32 bits in the byte order of the host.
func TestSocketAddress(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90": "127.0.0.1", "00000000000000000000000001000000:1F90": "::1",
		"00000000000000000000000000000000:1F90": "::", "xx:1F90": "<nil>", "0100007F": "<nil>",
	} {
		ip, port := socketAddress(text)
		if ip.String() != want || want != "<nil>" && port != 8080 {
			t.Errorf("%s: %s port %d, want %s", text, ip, port, want)
		}
	}
}

// Test spans have distinct ids, and times that every protocol can carry.
func TestTestSpan(t *testing.T) {
	a, b := newTestSpan(pipeline.SystemEnv(), "a"), newTestSpan(pipeline.SystemEnv(), "b")
	if a.trace == b.trace || a.start.Nanosecond()%1000 != 0 {
		t.Errorf("spans %+v and %+v", a, b)
	}
	if batch, err := a.batch(); err != nil || batch.Len() != 1 {
		t.Errorf("%v", err)
	}
}

// An expired authority does not matter if a file has a later one. An expired certificate of a chain
// does.
func TestCertificateFiles(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var content []byte
	for name, expiry := range map[string]time.Time{"old": now.Add(-time.Hour), "new": now.AddDate(1, 0, 0)} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: expiry}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	name := filepath.Join(t.TempDir(), "all.pem")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(authorities bool, want Verdict, found string) {
		t.Helper()
		file := certFile{path: name, authorities: authorities}
		if got := file.check("file", now); got.Verdict != want || !strings.Contains(got.Found, found) {
			t.Errorf("%+v", got)
		}
	}
	f(true, OK, `"new" is valid until`)
	f(false, Problem, `"old" expired`)
}
