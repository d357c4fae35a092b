package certificate

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store with one record.
type memory struct {
	mu       sync.Mutex
	value    []byte
	revision int64
	commits  int
	// Both methods return fail. The next Commit returns lose although it writes.
	fail, lose error
}

func (m *memory) Read(context.Context, api.Key) (spec, status *store.Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil || m.value == nil {
		return nil, nil, m.fail
	}
	return &store.Record{Key: recordKey, Value: m.value, ModRevision: m.revision}, nil, nil
}

func (m *memory) Commit(_ context.Context, writes ...store.Write) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return 0, m.fail
	}
	actual := m.revision
	if m.value == nil {
		actual = 0
	}
	if writes[0].Expect != actual {
		return 0, &store.ConflictError{Keys: []api.Key{recordKey}, Conflicts: []store.Conflict{{Key: recordKey, Expected: writes[0].Expect, Actual: actual}}}
	}
	m.value = writes[0].Value
	m.revision++
	m.commits++
	err := m.lose
	m.lose = nil
	return m.revision, err
}

func (m *memory) do(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func newSealer(t testing.TB, first byte) Sealer {
	t.Helper()
	key := make([]byte, 32)
	key[0] = first
	codec, err := store.NewCodec(key)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// opened returns an authority on a store.
func opened(t testing.TB, s Store, hosts ...string) *Authority {
	t.Helper()
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1"}
	}
	a, err := New(Options{Store: s, Sealer: newSealer(t, 1), Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// hidden is a store whose record cannot be read, so that no write succeeds.
type hidden struct{ memory }

func (h *hidden) Read(context.Context, api.Key) (spec, status *store.Record, err error) {
	return nil, nil, nil
}
