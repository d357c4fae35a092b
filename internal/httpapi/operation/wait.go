package operation

import (
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// Wait times of requests.
const (
	DefaultWait = 10 * time.Second
	MaxWait     = 60 * time.Second
)

// ParseWait parses how long a request waits for what follows from it.
func ParseWait(text string, absent time.Duration) (time.Duration, error) {
	if text == "" {
		return absent, nil
	}
	wait, err := api.Duration(text).Parse()
	if err != nil {
		return 0, problem.Invalid("wait", "%s", err)
	}
	if wait < 0 {
		return 0, problem.Invalid("wait", "%q must not be negative", text)
	}
	return min(wait, MaxWait), nil
}

// ParseRevision reads a resource_version.
func ParseRevision(field, text string) (int64, error) {
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || revision < 0 {
		return 0, problem.Invalid(field, "%q must be a resource_version as the server gave it: a whole number", text)
	}
	return revision, nil
}

// MaxPage is the maximum number of objects on a page, and the default.
const MaxPage = 5000
