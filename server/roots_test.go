package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// The container image has no root certificates.
func TestRootsOfASystemWithoutAny(t *testing.T) {
	const variable, missing = "SSL_CERT_FILE", "/missing"
	if os.Getenv(variable) != missing { // the system's are read only once in a process
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		command.Env = append(os.Environ(), variable+"="+missing, "SSL_CERT_DIR="+missing)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil || roots.Equal(x509.NewCertPool()) {
		t.Errorf("no root certificates: %v", err)
	}
}
