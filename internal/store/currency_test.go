package store

import "testing"

func TestProofsSayHowOldARevisionIs(t *testing.T) {
	var c currency
	c.prove(10, 5)
	if at := c.provenAt(4); at != 0 {
		t.Errorf("a reader at 4 was told %d although the store was at 5", at)
	}
	c.prove(20, 5) // nothing has changed since
	c.prove(30, 7)
	c.prove(25, 6) // an answer that was overtaken
	if at := c.provenAt(5); at != 20 {
		t.Errorf("at revision 5: %d, want 20", at)
	}
	if at := c.provenAt(6); at != 20 {
		t.Errorf("at revision 6: %d, want 20", at)
	}
	if at := c.provenAt(7); at != 30 {
		t.Errorf("at revision 7: %d, want 30", at)
	}
	c.prove(40, 7)
	if at := c.provenAt(7); at != 40 {
		t.Errorf("proven again: %d, want 40", at)
	}
	// The watch stands still while others write: the age grows, the memory does not.
	for i := range int64(100_000) {
		c.prove(50+i, 100+i)
	}
	if len(c.pending) > maxProofs {
		t.Errorf("%d proofs are kept", len(c.pending))
	}
	if at := c.provenAt(8); at != 40 {
		t.Errorf("a reader that is far behind was told %d, want 40", at)
	}
	if at := c.provenAt(1e6); at != 50+99_999 {
		t.Errorf("a reader that has caught up was told %d", at)
	}
}
