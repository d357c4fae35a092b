package ocm

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// TestEveryInputIsRead checks that changing any field of a case, at any depth, changes the translated input.
func TestEveryInputIsRead(t *testing.T) {
	all, err := written()
	if err != nil {
		t.Fatal(err)
	}
	unread, err := conformance.Unread(all, (*Case).input, (*Case).meansTheSame)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range unread {
		t.Errorf("field %s is never read", field)
	}
}

// meansTheSame reports whether changing a field leaves the translated input the same.
func (c *Case) meansTheSame(at string) bool {
	path := strings.Split(strings.TrimPrefix(at, "/"), "/")
	switch path[0] {
	case "id", "name", "source", "upstream", "kind", "tags", "note", "expect":
		return true // about the case, not its input
	case "existing_decisions":
		// If a page names its owner, its own name does not matter.
		return path[2] == "name"
	case "clusters":
		// A cluster that is being deleted is translated as deleted: here, deletion takes no time.
		i, err := strconv.Atoi(path[1])
		return err == nil && c.Clusters[i].Deleting && path[2] != "deleting"
	case "placements":
		// Without balance, the two modes are the same.
		return path[len(path)-1] == "mode"
	}
	return false
}

// input returns the complete input of a case.
func (c *Case) input() (string, error) {
	var laid any
	switch c.Kind {
	case Schedule:
		laid = []any{c.Now, c.World()}
	default:
		change, err := c.Change()
		if err != nil {
			return "", err
		}
		laid = []any{c.Now, change.Before, change.After}
	}
	raw, err := json.Marshal(laid)
	return string(raw), err
}
