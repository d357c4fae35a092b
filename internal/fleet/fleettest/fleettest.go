// Package fleettest is test code: it runs a fleet on a store of its own, without anything that
// decides.
package fleettest

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// World is a store with a fleet.
type World struct {
	Store *store.Store
	Codec *store.Codec
	Fleet *fleet.Fleet

	t *testing.T
}

// Start returns a World that ends with the test.
func Start(t *testing.T) *World {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &World{t: t}
	var err error
	if w.Store, err = store.Open(ctx, store.Options{DataDir: t.TempDir(), NoFsync: true, MinFreeBytes: 1 << 20, RequestTimeout: eventually.Limit, Patience: eventually.Limit}); err != nil {
		t.Fatal(err)
	}
	if w.Codec, err = store.NewCodec(bytes.Repeat([]byte{7}, 32)); err != nil {
		t.Fatal(err)
	}
	w.Fleet = fleet.New(fleet.Options{Store: w.Store, Codec: w.Codec})
	var background sync.WaitGroup
	background.Go(func() { _ = w.Fleet.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		background.Wait()
		if err := w.Store.Close(); err != nil {
			t.Error(err)
		}
	})
	<-w.Fleet.Ready()
	return w
}

// Write writes an object and its status, and waits until the fleet shows them.
func (w *World) Write(object api.Object) {
	w.t.Helper()
	key := api.KeyOf(object)
	spec, err := w.Codec.EncodeSpec(object)
	if err != nil {
		w.t.Fatal(err)
	}
	revision, err := w.Store.Commit(context.Background(), store.Write{Key: key, Part: store.Spec, Value: spec, Expect: store.Any})
	if err != nil {
		w.t.Fatal(err)
	}
	status, err := w.Codec.EncodeStatus(object)
	if err != nil {
		w.t.Fatal(err)
	}
	if revision, err = w.Store.Derive(context.Background(), []store.StatusWrite{{Key: key, Value: status, SpecRevision: revision}}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.Fleet.WaitRevision(context.Background(), revision); err != nil {
		w.t.Fatal(err)
	}
}

// Delete deletes an object.
func (w *World) Delete(key api.Key) {
	w.t.Helper()
	if _, err := w.Store.Commit(context.Background(), store.Write{Key: key, Part: store.Spec, Expect: store.Any}); err != nil {
		w.t.Fatal(err)
	}
}
