package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

func TestBackupCanBeRestored(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`)
	a := s.do(http.MethodGet, "/v1/backup", "")
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/x-tar" {
		t.Fatalf("unexpected answer %d %s", a.StatusCode, a.Header.Get("Content-Type"))
	}
	if err := store.Restore(context.Background(), bytes.NewReader(a.body), filepath.Join(t.TempDir(), "restored")); err != nil {
		t.Error(err)
	}
}

// breakingStore fails a backup after a few bytes.
type breakingStore struct {
	Store
	bytes int
}

func (b breakingStore) Backup(_ context.Context, w io.Writer, _ store.History) error {
	if _, err := w.Write(make([]byte, b.bytes)); b.bytes > 0 && err != nil {
		return err
	}
	return errors.Join(store.ErrUnavailable, errors.New("broken"))
}

func TestInterruptedBackupFails(t *testing.T) {
	s := startServer(t, func(o *Options) { o.Store = breakingStore{o.Store, 100_000} })
	if _, err := s.try(context.Background(), http.MethodGet, "/v1/backup", ""); err == nil {
		t.Error("the client accepted an incomplete backup")
	}
}
