package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// What etcd refuses was not written; of everything else nobody knows, and the
// caller must not repeat it.
func TestEveryErrorOfEtcdHasAMeaning(t *testing.T) {
	cases := []struct {
		err         error
		write, read error
	}{
		{rpctypes.ErrNoSpace, ErrFull, ErrFull},
		{rpctypes.ErrCompacted, ErrCompacted, ErrCompacted},
		{rpctypes.ErrFutureRev, ErrCompacted, ErrCompacted},
		{rpctypes.ErrRequestTooLarge, ErrInvalid, ErrInvalid},
		{rpctypes.ErrTooManyOps, ErrInvalid, ErrInvalid},
		{rpctypes.ErrTooManyRequests, ErrUnavailable, ErrUnavailable},
		{rpctypes.ErrPermissionDenied, ErrUnavailable, ErrUnavailable},
		{rpctypes.ErrTimeout, ErrUncertain, ErrUnavailable},
		{rpctypes.ErrTimeoutDueToLeaderFail, ErrUncertain, ErrUnavailable},
		{rpctypes.ErrStopped, ErrUncertain, ErrUnavailable},
		{context.DeadlineExceeded, ErrUncertain, ErrUnavailable},
		{context.Canceled, ErrUncertain, ErrUnavailable},
		{errors.New("the connection broke"), ErrUncertain, ErrUnavailable},
	}
	kinds := []error{ErrFull, ErrCompacted, ErrInvalid, ErrUnavailable, ErrUncertain, ErrFenced}
	for _, c := range cases {
		for write, want := range map[bool]error{true: c.write, false: c.read} {
			got := classify(fmt.Errorf("wrapped: %w", c.err), write)
			for _, kind := range kinds {
				if errors.Is(got, kind) != errors.Is(want, kind) {
					t.Errorf("classify(%v, %v) = %v, want %v", c.err, write, got, want)
				}
			}
		}
	}
	if classify(nil, true) != nil {
		t.Error("classify(nil, true) is not nil")
	}
}

func TestConflictNamesTheFirstFew(t *testing.T) {
	var conflicts []Conflict
	for i := range 8 {
		conflicts = append(conflicts, Conflict{Key: placement(i), Expected: 5, Actual: int64(i)})
	}
	want := `conflict: placement "shop/p-00000" does not exist; expected revision 5; placement "shop/p-00001" is at revision 1; expected 5; ` +
		`placement "shop/p-00002" is at revision 2; expected 5; placement "shop/p-00003" is at revision 3; expected 5; ` +
		`placement "shop/p-00004" is at revision 4; expected 5; and 3 more`
	if got := newConflictError(conflicts).Error(); got != want {
		t.Errorf("got %s", got)
	}
}
