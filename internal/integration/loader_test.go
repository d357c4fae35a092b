//go:build integration

package integration

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// loader writes objects directly into the data directory of a stopped server.
type loader struct {
	t     testing.TB
	store *store.Store
	codec *store.Codec
	now   time.Time
	batch []store.Write
}

func newLoader(t testing.TB, dir string) *loader {
	t.Helper()
	opened, err := store.Open(context.Background(), store.Options{DataDir: dir, NoFsync: true, RequestTimeout: storetest.Patience, Patience: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := store.OpenCodec(filepath.Join(dir, "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	return &loader{t: t, store: opened, codec: codec, now: time.Now().UTC()}
}

// write adds an object as it is after its first PUT, optionally with its status.
func (l *loader) write(object api.Object, status bool) {
	l.t.Helper()
	object.SetDefaults()
	meta := object.Meta()
	meta.UID, meta.Generation, meta.CreatedAt, meta.ModifiedAt = api.KeyOf(object).Path(), 1, &l.now, &l.now
	value, err := l.codec.EncodeSpec(object)
	if err != nil {
		l.t.Fatal(err)
	}
	l.batch = append(l.batch, store.Write{Key: api.KeyOf(object), Part: store.Spec, Value: value, Expect: 0})
	if status {
		if value, err = l.codec.EncodeStatus(object); err != nil {
			l.t.Fatal(err)
		}
		l.batch = append(l.batch, store.Write{Key: api.KeyOf(object), Part: store.Status, Value: value, Expect: 0})
	}
	if len(l.batch) >= 100 {
		l.flush()
	}
}

func (l *loader) flush() {
	if len(l.batch) == 0 {
		return
	}
	if _, err := l.store.Commit(context.Background(), l.batch...); err != nil {
		l.t.Fatal(err)
	}
	l.batch = l.batch[:0]
}

func (l *loader) close() {
	l.flush()
	if err := l.store.Close(); err != nil {
		l.t.Fatal(err)
	}
}
