package httpapi

import (
	"fmt"
	"net/http"
	"strings"
)

// CheckState is the result of a readiness check.
type CheckState string

// States. With a warning, the server is still ready.
const (
	CheckOK      CheckState = "ok"
	CheckWarning CheckState = "warning"
	CheckError   CheckState = "error"
)

// Check is one readiness check. It is public, so it must not name objects.
type Check struct {
	Name   string
	State  CheckState
	Detail string
}

// check returns a passed or failed check.
func check(name string, err error) Check {
	if err != nil {
		return Check{name, CheckError, err.Error()}
	}
	return Check{Name: name, State: CheckOK}
}

// failed returns the first failed check, or nil.
func failed(checks []Check) *Check {
	for i, c := range checks {
		if c.State == CheckError {
			return &checks[i]
		}
	}
	return nil
}

// checkMarks are the prefixes in a list of checks, as in Kubernetes.
var checkMarks = map[CheckState]string{CheckOK: "[+]", CheckWarning: "[!]", CheckError: "[-]"}

// listChecks returns one line for each check, and a summary.
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

// readiness responds with 503 while a check fails. With verbose, it lists all checks.
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
