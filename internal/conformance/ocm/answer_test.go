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
	seen := map[string]bool{}
	for _, raw := range all {
		c, err := read(raw)
		if err != nil {
			t.Error(err)
			continue
		}
		if seen[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = true
		is, err := c.input()
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			continue
		}
		variants, err := conformance.Variants(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range variants {
			other, err := read(v.Document)
			if err != nil || c.meansTheSame(v) {
				continue
			}
			if was, err := other.input(); err == nil && was == is {
				t.Errorf("%s: nobody reads %s (%s)", c.ID, v.Path, v.Change)
			}
		}
	}
}

// meansTheSame reports whether a change of a case changes nothing of what is laid
// before whoever decides it.
func (c *Case) meansTheSame(v conformance.Variant) bool {
	if v.Change != conformance.Other {
		return true // what is there is read; what is missing may be the default
	}
	path := strings.Split(strings.TrimPrefix(v.Path, "/"), "/")
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
