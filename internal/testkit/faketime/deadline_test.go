package faketime_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func TestDeadlinePassesWhenTheTestSaysSo(t *testing.T) {
	ctx, pass := faketime.Deadline(t)
	child, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if err := errors.Join(ctx.Err(), child.Err()); err != nil {
		t.Errorf("before: %v", err)
	}
	pass()
	<-child.Done()
	for _, c := range []context.Context{ctx, child} {
		if err := context.Cause(c); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(c.Err(), context.DeadlineExceeded) {
			t.Errorf("after: %v, %v", err, c.Err())
		}
	}
}

func TestServeLetsTimePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := faketime.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if string(text) != "begun" || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("after %s: %q, %v", time.Since(began), text, err)
		}
	})
}
