package main

import (
	"crypto/x509"
	"path/filepath"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
)

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t testing.TB) (certificateFile, keyFile string) {
	t.Helper()
	template := certtest.Loopback("scheduler-server")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	dir := t.TempDir()
	certificateFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certtest.SelfSigned(t, template).Write(t, certificateFile, keyFile)
	return certificateFile, keyFile
}
