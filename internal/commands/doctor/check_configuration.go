package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// checkConfiguration repeats the warnings of the loader, and checks files and folders as `tracing
// validate` does.
func checkConfiguration(_ context.Context, x *examination) []Finding {
	var found []Finding
	for _, w := range x.config.Warnings() {
		found = append(found, newFinding("", Warning, "%s", w))
	}
	if err := x.config.CheckFiles(); err != nil {
		for line := range strings.Lines(err.Error()) {
			found = append(found, newFinding("", Problem, "%s", strings.TrimSpace(line)).
				advise("create the file or folder, or change its permissions or the key"))
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", OK, "valid; the files and folders that it names can be used"))
	}
	return found
}

// soon is the time before the expiry of a certificate in which the finding is a warning.
const soon = 14 * 24 * time.Hour

// checkCertificates reads the certificates in the files that the configuration names.
func checkCertificates(_ context.Context, x *examination) []Finding {
	var found []Finding
	for _, c := range x.used {
		found = append(found, certificatesOf(c, x.env.Now())...)
	}
	for _, o := range x.config.Service.Telemetry.Traces.Destinations() {
		for _, f := range []certFile{{"certificate", o.Certificate, true}, {"client_certificate", o.ClientCertificate, false}} {
			if f.path != "" {
				found = append(found, f.check("service::telemetry::traces ("+f.key+" "+f.path+")", x.env.Now()))
			}
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no certificate files in the configuration"))
	}
	return found
}

func certificatesOf(c *app.Component, now time.Time) (found []Finding) {
	c.Walk(func(path []string, field any, tag reflect.StructTag) {
		name := tag.Get("yaml")
		file, ok := field.(*string)
		if !ok || *file == "" || !slices.Contains([]string{"cert_file", "ca_file", "client_ca_file"}, name) {
			return
		}
		f := certFile{key: strings.Join(path, "::"), path: *file, authorities: name != "cert_file"}
		found = append(found, f.check(key(c)+"::"+f.key+" ("+f.path+")", now))
	})
	return found
}

// maxCertificates is the maximum size of a file with certificates.
const maxCertificates = 1 << 20

// certFile is a file with certificates in PEM.
type certFile struct {
	key, path   string
	authorities bool // separately trusted certificates; otherwise a certificate with its chain
}

func (c *certFile) check(subject string, now time.Time) Finding {
	content, err := pipeline.ReadFile(context.Background(), c.path, maxCertificates)
	if err != nil {
		return newFinding(subject, Problem, "cannot read: %v", err).advise("create the file, or allow this user to read it")
	}
	var all []*x509.Certificate
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return newFinding(subject, Problem, "not a valid certificate: %v", err).advise("replace the file")
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return newFinding(subject, Problem, "no certificate in PEM").
			advise("replace the file with one that begins with -----BEGIN CERTIFICATE-----")
	}
	if c.authorities { // certificates that have expired before the last one have been replaced
		all = []*x509.Certificate{slices.MaxFunc(all, byExpiry)}
	}
	f := validity(subject, all, now)
	if f.Verdict > OK {
		return f.advise("replace the file; the program rereads it automatically")
	}
	return f
}

func byExpiry(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }

// validity judges the certificate in a list that expires first.
func validity(subject string, all []*x509.Certificate, now time.Time) Finding {
	first := slices.MinFunc(all, byExpiry)
	name := first.Subject.CommonName
	if name == "" && len(first.DNSNames) > 0 {
		name = first.DNSNames[0]
	}
	switch left := first.NotAfter.Sub(now); {
	case left <= 0:
		return newFinding(subject, Problem, "certificate of %q expired on %s", name, date(first.NotAfter))
	case now.Before(first.NotBefore):
		return newFinding(subject, Problem, "certificate of %q is not valid before %s", name, date(first.NotBefore))
	case left < soon:
		return newFinding(subject, Warning, "certificate of %q expires in %s, on %s", name, roundTime(left), date(first.NotAfter))
	}
	return newFinding(subject, OK, "certificate of %q is valid until %s", name, date(first.NotAfter))
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// roundTime rounds a duration for display, to days if it is long.
func roundTime(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// size returns a number of bytes for readers.
func size(n int64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case n >= 10*gib:
		return fmt.Sprintf("%d GiB", n/gib)
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	case n >= mib:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= kib:
		return fmt.Sprintf("%d KiB", n/kib)
	}
	return fmt.Sprintf("%d B", n)
}
