package storetest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// VerifyMain runs the tests of a package and fails where they leave goroutines behind. A member of a cluster that stops
// while another one connects to it leaves the connection to its time limit, which is five seconds.
func VerifyMain(m *testing.M) { goleak.VerifyTestMain(patient{m}) }

type patient struct{ *testing.M }

// Run implements goleak.TestingM.
func (p patient) Run() int {
	code := p.M.Run()
	for deadline := time.Now().Add(20 * time.Second); goleak.Find() != nil && time.Now().Before(deadline); {
	}
	return code
}
