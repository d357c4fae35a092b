// Package tempstore is test code: a store that lasts as long as its test.
package tempstore

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// Open opens a new store, which is closed after the test and everything that was started later.
func Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{DataDir: t.TempDir(), NoFsync: true, MinFreeBytes: 1, RequestTimeout: storetest.Patience, Patience: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
