package store

import (
	"errors"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// What a leader declares is there once, never replaces what is there, and nothing is declared after its term.
func TestDeclare(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	cluster := func(name string) Write {
		return Write{Key: api.Key{Kind: api.KindCluster, Name: name}, Value: []byte("declared"), Expect: 0}
	}
	if _, err := s.Declare(ctx, cluster("a")); err != nil {
		t.Fatal(err)
	}
	var conflict *ConflictError
	if _, err := s.Declare(ctx, cluster("a")); !errors.As(err, &conflict) {
		t.Errorf("declared twice: %v, want a conflict", err)
	}
	put(t, s, cluster("users").Key, "of a user")
	if _, err := s.Declare(ctx, cluster("users")); !errors.As(err, &conflict) {
		t.Errorf("declared over an object of a user: %v, want a conflict", err)
	}
	spec, _, err := s.Read(ctx, cluster("users").Key)
	if err != nil || string(spec.Value) != "of a user" {
		t.Errorf("read %v, %v", spec, err)
	}
	if spec, _, err = s.Read(ctx, cluster("a").Key); err != nil {
		t.Fatal(err)
	}
	// Removed as it was seen, and not if it has a status meanwhile.
	seen := []Write{{Key: cluster("a").Key, Expect: spec.ModRevision}, {Key: cluster("a").Key, Part: Status, CheckOnly: true}}
	if _, err := s.Derive(ctx, []StatusWrite{{Key: cluster("a").Key, Value: []byte("alive"), SpecRevision: spec.ModRevision}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Declare(ctx, seen...); !errors.As(err, &conflict) {
		t.Errorf("removed although it is alive: %v, want a conflict", err)
	}
	// Another process that opens the same store does this.
	if _, err := s.etcd.client.Put(ctx, epochKey, "somebody else"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Declare(ctx, cluster("b")); !errors.Is(err, ErrFenced) {
			t.Fatalf("error %v, want ErrFenced", err)
		}
	}
	if spec, _, err := s.Read(ctx, cluster("b").Key); err != nil || spec != nil {
		t.Errorf("declared after the term: %v, %v", spec, err)
	}
}
