package store

import (
	"errors"
	"testing"
)

// A status that was made from another one is written only over that one, and costs those
// beside it nothing.
func TestAStatusIsWrittenOverTheOneItWasMadeFrom(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	revisions := fill(t, s, 130) // more than fit in one transaction
	none := int64(0)
	first := statuses(revisions, "first")
	for i := range first {
		first[i].Over = &none
	}
	if _, err := s.Derive(ctx, first); err != nil {
		t.Fatalf("first statuses: %v", err)
	}
	over := make([]int64, len(revisions))
	for i := range revisions {
		_, status, err := s.Read(ctx, placement(i))
		if err != nil {
			t.Fatal(err)
		}
		over[i] = status.ModRevision
	}
	if _, err := s.Derive(ctx, statuses(revisions[:1], "somebody else's")); err != nil {
		t.Fatal(err)
	}
	second := statuses(revisions, "second")
	for i := range second {
		second[i].Over = &over[i]
	}
	second[1].Over = &none
	second[2].Over = nil
	put(t, s, placement(3), "newer") // derived from another spec, whatever the status
	second[3].Over = &none
	_, err := s.Derive(ctx, second)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || len(conflict.Conflicts) != 3 {
		t.Fatalf("error %v, want 3 conflicts", err)
	}
	status, spec := conflict.Of(Status), conflict.Of(Spec)
	if len(spec.Keys) != 1 || spec.Keys[0] != placement(3) || len(status.Keys) != 2 {
		t.Fatalf("unexpected conflicts %+v", conflict.Conflicts)
	}
	for _, c := range status.Conflicts {
		if want := map[int64]bool{over[0]: true, 0: true}; !want[c.Expected] || c.Actual <= c.Expected {
			t.Errorf("got %+v", c)
		}
	}
	for i := range revisions {
		want := map[int]string{0: "somebody else's", 1: "first", 3: "first"}[i]
		if want == "" {
			want = "second"
		}
		if _, status, err := s.Read(ctx, placement(i)); err != nil || string(status.Value) != want {
			t.Errorf("placement %d: %q (%v), want %q", i, status.Value, err, want)
		}
	}
}
