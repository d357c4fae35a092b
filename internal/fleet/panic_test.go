package fleet

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// poisonedCodec panics on the spec of one object.
type poisonedCodec struct{ Codec }

func (c poisonedCodec) DecodeSpec(kind api.Kind, value []byte) (api.Object, error) {
	object, err := c.Codec.DecodeSpec(kind, value)
	if err == nil && object.Meta().Name == "poison" {
		panic("over the object")
	}
	return object, err
}

// A panic on one record only costs that object its newest version; the snapshot moves on.
func TestPanicOnARecordDropsOnlyThatRecord(t *testing.T) {
	b := start(t, func(o *Options) { o.Codec = poisonedCodec{o.Codec} })
	var last int64
	for _, name := range []string{"a", "poison", "b"} {
		c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name, Generation: 1}}
		c.SetDefaults()
		value, err := b.codec.EncodeSpec(c)
		if err != nil {
			t.Fatal(err)
		}
		if last, err = b.store.Commit(b.ctx, store.Write{Key: api.KeyOf(c), Part: store.Spec, Value: value, Expect: 0}); err != nil {
			t.Fatal(err)
		}
	}
	snapshot, err := b.fleet.WaitRevision(b.ctx, last)
	if err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"a": true, "poison": false, "b": true} {
		if got := snapshot.Get(api.Key{Kind: api.KindCluster, Name: name}) != nil; got != there {
			t.Errorf("cluster %s exists: %v, want the opposite", name, got)
		}
	}
}
