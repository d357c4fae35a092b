package httpapi

import (
	"fmt"
	"net/http"
	"strings"
)

// CheckState is how a check of readiness came out.
type CheckState string

// The states. A warning leaves the server ready.
const (
	CheckOK      CheckState = "ok"
	CheckWarning CheckState = "warning"
	CheckError   CheckState = "error"
)

// Check is one thing that readiness looks at. Everybody may see it, so it names
// no objects.
type Check struct {
	Name   string
	State  CheckState
	Detail string
}

// check passes, or fails with an error.
func check(name string, err error) Check {
	if err != nil {
		return Check{name, CheckError, err.Error()}
	}
	return Check{Name: name, State: CheckOK}
}

// failed is the first check that fails, nil where all pass.
func failed(checks []Check) *Check {
	for i, c := range checks {
		if c.State == CheckError {
			return &checks[i]
		}
	}
	return nil
}

// checkMarks begin the lines of a list of checks, as Kubernetes writes them.
var checkMarks = map[CheckState]string{CheckOK: "[+]", CheckWarning: "[!]", CheckError: "[-]"}

// listed is one line for each check, and one that sums up.
func listChecks(checks []Check) string {
	var text strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&text, "%s%s %s", checkMarks[c.State], c.Name, c.State)
		if c.Detail != "" {
			text.WriteString(": " + c.Detail)
		}
		text.WriteByte('\n')
	}
	if failed(checks) != nil {
		return text.String() + "readyz check failed\n"
	}
	return text.String() + "readyz check passed\n"
}

// readiness answers 503 while a check fails. With verbose it lists all of them.
func (s *status) readiness(w http.ResponseWriter, r *http.Request) {
	checks := s.checks()
	status, text := http.StatusOK, "ok\n"
	if damage := s.damage(); damage.State != CheckOK {
		text += damage.Detail + "\n"
	}
	if failure := failed(checks); failure != nil {
		status, text = http.StatusServiceUnavailable, failure.Detail+"\n"
		w.Header().Set("Retry-After", "1")
	}
	if r.URL.Query().Has("verbose") {
		text = listChecks(checks)
	}
	writeText(w, status, text)
}
