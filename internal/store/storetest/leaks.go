package storetest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// VerifyMain runs the tests of a package and fails if they leak goroutines. A cluster member that
// stops while another one connects to it leaves the connection until its timeout of five seconds.
func VerifyMain(m *testing.M) { goleak.VerifyTestMain(patient{m}) }

type patient struct{ *testing.M }

// Run implements goleak.TestingM.
func (p patient) Run() int {
	code := p.M.Run()
	for deadline := time.Now().Add(20 * time.Second); goleak.Find() != nil && time.Now().Before(deadline); {
	}
	return code
}
