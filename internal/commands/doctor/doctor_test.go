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

	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
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

// The response of another host has whole seconds, and was made between two local times.
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

// Texts of files and other processes cannot control the terminal, or add lines to the report.
func TestTextIsPrintable(t *testing.T) {
	hostile := "a\x1b[2J\x9b31m\u009b\xff\r\n0 problems\u202e \u2713"
	finding := newFinding(hostile, Problem, "%s", hostile).advise("%s", hostile)
	r := Report{Version: "dev", Checks: []Result{newResult("ports", []Finding{finding})}}
	var b strings.Builder
	if err := r.writeText(&b); err != nil {
		t.Fatal(err)
	}
	const safe = `a\x1b[2J\x9b31m\u009b\xff\r\n0 problems\u202e ` + "\u2713"
	if got := strings.Split(b.String(), "\n"); len(got) != 8 || got[3] != "  problem  "+safe+": "+safe || got[4] != "           -> "+safe {
		t.Errorf("got %q", got)
	}
}

// Advice has numbers with units, and is possible.
func TestAdviceOnFullDisk(t *testing.T) {
	x := &examination{env: pipeline.SystemEnv()}
	f := func(minFree pipeline.ByteSize, used int, want string) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, used), 0o600); err != nil {
			t.Fatal(err)
		}
		x.env.FS = freeDisk{vfs.OS(), 1 << 20}
		component := &app.Component{}
		component.Key.Kind, component.Key.ID = pipeline.KindExporter, pipeline.ID{Type: "disk"}
		got := x.storeSpace(t.Context(), component, &disk.Config{MinFree: minFree}, dir)
		if text := got.Found + " -> " + got.Advice; text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	}
	f(4<<20, 46, "1 MiB free, below min_free (4 MiB): the disk counts as full -> "+
		"delete other files, enlarge the disk, or lower exporters::disk::min_free")
	f(2<<20, 3<<20, "1 MiB free, below min_free (2 MiB): the disk counts as full -> "+
		"delete other files, enlarge the disk, or set exporters::disk::retention::size to at most 2 MiB; the store takes 3 MiB now")
	if got := size(46) + size(2048); got != "46 B2 KiB" {
		t.Error(got)
	}
}

// freeDisk has some free bytes.
type freeDisk struct {
	vfs.FS
	free int64
}

func (d freeDisk) Free(string) (int64, error) { return d.free, nil }

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
