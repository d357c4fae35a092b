package store

import "testing"

func TestProofsSayHowOldARevisionIs(t *testing.T) {
	var c freshness
	c.prove(10, 5)
	if at := c.provenAt(4); at != 0 {
		t.Errorf("provenAt(4) = %d, want 0: the store was at revision 5", at)
	}
	c.prove(20, 5) // nothing has changed since
	c.prove(30, 7)
	c.prove(25, 6) // an earlier answer that arrives late
	if at := c.provenAt(5); at != 20 {
		t.Errorf("provenAt(5) = %d, want 20", at)
	}
	if at := c.provenAt(6); at != 20 {
		t.Errorf("provenAt(6) = %d, want 20", at)
	}
	if at := c.provenAt(7); at != 30 {
		t.Errorf("provenAt(7) = %d, want 30", at)
	}
	c.prove(40, 7)
	if at := c.provenAt(7); at != 40 {
		t.Errorf("provenAt(7) = %d after another proof, want 40", at)
	}
	// The watch stalls while others write: the age grows, but not the memory.
	for i := range int64(100_000) {
		c.prove(50+i, 100+i)
	}
	if len(c.pending) > maxProofs {
		t.Errorf("%d proofs are stored, want at most maxProofs", len(c.pending))
	}
	if at := c.provenAt(8); at != 40 {
		t.Errorf("provenAt(8) = %d for a reader that lags behind, want 40", at)
	}
	if at := c.provenAt(1e6); at != 50+99_999 {
		t.Errorf("provenAt(1e6) = %d for a reader that has caught up", at)
	}
}
