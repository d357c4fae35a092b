package terraform

import (
	"fmt"
	"io"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// Of reads that fail at the same time one reports that the server is lost.
func TestOneReadReportsTheLoss(t *testing.T) {
	s, err := &Session{}, fmt.Errorf("read: %w", &client.LostError{Err: io.EOF})
	if s.lostBefore(io.EOF) || s.lostBefore(err) {
		t.Error("lostBefore() = true before the first report")
	}
	if !s.lostBefore(err) { // the first is about to report it
		t.Error("the lost server is reported twice")
	}
}
