package fdlimit

import "testing"

func TestShare(t *testing.T) {
	for _, test := range []struct{ limit, inbound int }{{64, 16}, {256, 64}, {1024, 448}, {20_000, 9936}, {1 << 20, 524_224}} {
		got, err := share(test.limit)
		if err != nil || got.Limit != test.limit || got.Inbound != test.inbound || got.Outbound != test.inbound {
			t.Errorf("Share(%d) = %+v, %v; want %d each", test.limit, got, err, test.inbound)
		}
		if aside := test.limit - got.Inbound - got.Outbound; aside < 32 {
			t.Errorf("of %d descriptors, %d are left for the store, want at least 32", test.limit, aside)
		}
	}
	if got, err := share(63); err == nil {
		t.Errorf("share(63) = %+v, want an error", got)
	}
}

func TestRead(t *testing.T) {
	if got, err := Read(); err != nil || got.Inbound < 16 {
		t.Errorf("Read() = %+v, %v", got, err)
	}
}
