package ocm

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// TestEveryInputIsRead: a case that differs in one thing, at any depth, is another
// world.
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
		t.Errorf("nobody reads %s", field)
	}
}

// meansTheSame reports whether a field may be another without anything of what is
// laid before whoever decides being another.
func (c *Case) meansTheSame(at string) bool {
	path := strings.Split(strings.TrimPrefix(at, "/"), "/")
	switch path[0] {
	case "id", "name", "source", "upstream", "kind", "tags", "note", "expect":
		return true // about the case, not its input
	case "existing_decisions":
		// A page that says whose it is has no use for its name.
		return path[2] == "name"
	case "clusters":
		// What is being deleted is gone here: deleting takes no time.
		i, err := strconv.Atoi(path[1])
		return err == nil && c.Clusters[i].Deleting && path[2] != "deleting"
	case "placements":
		// Without balance, which the one mode has and the other does not.
		return path[len(path)-1] == "mode"
	}
	return false
}

// input is all that is laid before whoever decides a case.
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
