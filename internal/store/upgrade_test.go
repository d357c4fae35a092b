package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// restored creates a data directory from a backup in testdata.
func restored(t *testing.T, archive string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := Restore(t.Context(), storetest.Backup(t, "testdata/"+archive), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// values returns all values in a store, and fails if one is damaged.
func values(t *testing.T, s *Store) map[partKey]string {
	t.Helper()
	all := map[partKey]string{}
	if _, err := s.Load(timeout(t), 0, func(r Record) error {
		if r.Damage != nil {
			t.Error(r.Damage)
		}
		all[partKey{r.Key, r.Part}] = string(r.Value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// likeAnObject is a value that is compressed if the format allows it.
const likeAnObject = `{"metadata":{"name":"web","namespace":"shop","generation":1},"spec":{}}`

// goneBack converts a new store to the previous format, as if an older program had created it.
func goneBack(t *testing.T, s *Store) {
	t.Helper()
	ctx := timeout(t)
	if _, err := s.client.Put(ctx, formatKey, strconv.Itoa(previousFormat)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.readFormat(ctx); err != nil || s.written() != previousFormat {
		t.Fatal(s.written(), err)
	}
}

// unlike returns which values of a store differ.
func unlike(was, is map[partKey]string) (differ []partKey) {
	for key, value := range was {
		if is[key] != value {
			differ = append(differ, key)
		}
	}
	return differ
}

// What an earlier program of this format has written is read: another key, envelope or dictionary needs another number.
func TestStoreOfThisFormatIsRead(t *testing.T) {
	dir := restored(t, fmt.Sprintf("format-%d.tar.gz", formatVersion))
	if report, err := Check(dir); err != nil || len(report.Findings) > 0 {
		t.Errorf("Check() = %v, %v", report.Findings, err)
	}
	s := open(t, func(o *Options) { o.DataDir = dir })
	all := values(t, s)
	if len(all) != 11 || s.written() != formatVersion {
		t.Errorf("%d values, format %d", len(all), s.written())
	}
	codec := testCodec(t, 1)
	kinds := map[api.Kind]bool{}
	for key, value := range all {
		if _, ok := api.LookupKind(key.key.Kind); !ok || key.part != Spec {
			continue // a token, or a status
		}
		kinds[key.key.Kind] = true
		if object, err := codec.DecodeSpec(key.key.Kind, []byte(value)); err != nil || api.KeyOf(object) != key.key {
			t.Errorf("%s: %v, %v", key.key, object, err)
		}
	}
	packed := 0
	for key := range all {
		if raw(t, s, etcdKey(key.key, key.part))[0] == compressedMark {
			packed++
		}
	}
	if len(kinds) < 3 || packed == 0 || packed == len(all) {
		t.Errorf("%d of %d values of the kinds %v are compressed", packed, len(all), kinds)
	}
}

// A store of the previous format keeps its number, whatever is written, until the upgrade is finished: either program
// may open it next. Afterwards, existing values are still readable.
func TestOlderFormatIsWrittenUntilTheUpgradeIsFinished(t *testing.T) {
	dir := t.TempDir()
	on := func(o *Options) { o.DataDir, o.MarkInterval = dir, time.Nanosecond }
	s := open(t, on)
	goneBack(t, s)
	var before map[partKey]string
	for n := range 2 { // go back and forth
		put(t, s, placement(n), likeAnObject)
		s.probe() // writes the mark
		before = values(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, on)
		if got := s.Info(); got.Format != previousFormat || got.NewestFormat != formatVersion || string(raw(t, s, formatKey)) != strconv.Itoa(previousFormat) {
			t.Fatalf("unexpected format %+v", got)
		}
	}
	if err := s.FinishUpgrade(timeout(t)); err != nil {
		t.Fatal(err)
	}
	put(t, s, placement(2), likeAnObject)
	before[partKey{placement(2), Spec}] = likeAnObject
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := Check(dir); err != nil || len(report.Findings) > 0 {
		t.Errorf("Check() = %v, %v", report.Findings, err)
	}
	s = open(t, on)
	if got := s.Info(); got.Format != formatVersion {
		t.Errorf("format %d", got.Format)
	}
	if differ := unlike(before, values(t, s)); len(before) != 3 || len(differ) > 0 {
		t.Errorf("of %d values, these differ: %v", len(before), differ)
	}
	// A value without its envelope is damaged, whatever format it was written in.
	damage(t, s, etcdKey(placement(1), Spec), []byte(likeAnObject))
	if spec, _, err := s.Read(t.Context(), placement(1)); err != nil || spec.Damage == nil {
		t.Errorf("a value without its envelope was accepted: %v, %v", spec, err)
	}
}

// A format that no server of the previous version can have is refused with the reason.
func TestFormatThatIsNotKnownIsRefused(t *testing.T) {
	for number, want := range map[string]string{
		strconv.Itoa(formatVersion + 1):  "the data has format 4, this program knows formats up to 3: use a newer program",
		strconv.Itoa(previousFormat - 1): "the data has format 1, this program knows formats from 2 on: use an older program",
		"0":                              `"0" is not the number of a store format`,
		"three":                          `"three" is not the number of a store format`,
	} {
		if _, err := parseFormat(number); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("format %s: error %v, want %s", number, err, want)
		}
	}
	for _, number := range []int{previousFormat, formatVersion} {
		if got, err := parseFormat(strconv.Itoa(number)); err != nil || got != number {
			t.Errorf("format %d: %d, %v", number, got, err)
		}
	}
}

// olderServer joins the election like a server of the previous version, until leave is called.
func olderServer(t *testing.T, s *Store, name string) (leave func()) {
	t.Helper()
	key := candidatePrefix + name
	if _, err := s.client.Put(timeout(t), key, `{"id":"`+name+`","name":"`+name+`","url":"https://`+name+`","version":"1.0.0","format":2,"revision":7}`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := s.client.Delete(timeout(t), key); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormatWaitsForTheOldestServer: the one that leads raises the format when every
// server has read it for the window, and the others follow; an operator may not before
// that either, while there is a server that does not read it.
func TestFormatWaitsForTheOldestServer(t *testing.T) {
	p := leaderAndNext(t)
	defer func() { p.term.Resign(); <-p.terms }()
	goneBack(t, p.first)
	goneBack(t, p.second)
	window, waiting := &window{}, &window{}
	p.first.options.UpgradeWindow, p.second.options.UpgradeWindow = time.Hour, time.Nanosecond
	look := func() int {
		p.second.lookAtPrograms(waiting)
		p.first.lookAtPrograms(window)
		return p.first.written()
	}
	leave := olderServer(t, p.first, "old")
	if look() != 2 || window.began != 0 {
		t.Fatalf("with an older server: format %d, window %+v", p.first.written(), window)
	}
	for _, s := range []*Store{p.first, p.second} {
		var older *OlderServerError
		if err := s.FinishUpgrade(timeout(t)); !errors.As(err, &older) || !strings.Contains(err.Error(), `the server "old" at https://old (version 1.0.0) reads formats of the store up to 2, not 3`) {
			t.Fatalf("unexpected error %v", err)
		}
	}
	leave()
	if look() != 2 || window.began == 0 {
		t.Fatalf("during the window: format %d, window %+v", p.first.written(), window)
	}
	// A server that returns restarts the window.
	leave = olderServer(t, p.first, "again")
	if look() != 2 || window.began != 0 {
		t.Fatalf("after one server was downgraded: format %d, window %+v", p.first.written(), window)
	}
	leave()
	look()
	p.first.options.UpgradeWindow = 0 // never
	if look() != 2 {
		t.Fatal("the format was raised automatically without a window")
	}
	p.first.options.UpgradeWindow = time.Nanosecond
	if look() != 3 {
		t.Fatal("the format was not raised after the window")
	}
	if p.second.probe(); p.second.written() != 3 {
		t.Fatal("the other server writes the older format still")
	}
	if list, err := p.second.Candidates(timeout(t)); err != nil || len(list) != 2 || list[0].Format != 3 || list[1].Format != 3 {
		t.Fatalf("candidates %+v, error %v", list, err)
	}
}

// kvBefore calls a function before a transaction.
type kvBefore struct {
	clientv3.KV

	txns   atomic.Int64
	nth    int64
	before func()
}

func (k *kvBefore) Txn(ctx context.Context) clientv3.Txn {
	if k.txns.Add(1) == k.nth {
		k.before()
	}
	return k.KV.Txn(ctx)
}

// TestServerThatComesJustNowKeepsTheFormat: between the look at the servers and the
// raise one comes that does not read the format.
func TestServerThatComesJustNowKeepsTheFormat(t *testing.T) {
	p := leaderAndNext(t)
	defer func() { p.term.Resign(); <-p.terms }()
	goneBack(t, p.second)
	interpose(t, p.second, func(kv clientv3.KV) *kvBefore {
		return &kvBefore{KV: kv, nth: 2, before: func() { olderServer(t, p.first, "late") }}
	})
	err := p.second.FinishUpgrade(timeout(t))
	var older *OlderServerError
	if !errors.As(err, &older) || older.Server.Name != "late" || string(raw(t, p.second, formatKey)) != "2" {
		t.Fatalf("unexpected error %v", err)
	}
}

// TestServerThatComesTooLateEnds: one that read the older format just before the raise,
// and stands in the line just after it, finds another identity than it has seen, which
// ends it. The others go on.
func TestServerThatComesTooLateEnds(t *testing.T) {
	p := leaderAndNext(t)
	defer func() { p.term.Resign(); <-p.terms }()
	seen := string(raw(t, p.first, identityKey)[envelopeHead:])
	var w window
	p.first.lookAtPrograms(&w)
	if now := string(raw(t, p.first, identityKey)[envelopeHead:]); now != seen {
		t.Fatal("the identity changed without a reason")
	}
	olderServer(t, p.first, "late")
	p.second.lookAtPrograms(&window{}) // does not lead
	p.first.lookAtPrograms(&w)
	now := string(raw(t, p.first, identityKey)[envelopeHead:])
	if now == seen || identityIn([]byte(now)) != seen {
		t.Fatalf("the identity changed from %q to %q", seen, now)
	}
	p.first.lookAtPrograms(&w)
	if again := string(raw(t, p.first, identityKey)[envelopeHead:]); again != now {
		t.Error("the identity was changed twice")
	}
	for _, s := range []*Store{p.first, p.second} {
		if s.probe(); s.Writable() != nil || s.guard.replaced.Load() {
			t.Errorf("a server of the newest format is made to end: %v", s.Writable())
		}
	}
}

// TestServerEndsWhenTheFormatIsBeyondIt with the sentence with which it would not start.
func TestServerEndsWhenTheFormatIsBeyondIt(t *testing.T) {
	var fatal atomic.Pointer[error]
	s := open(t, func(o *Options) { o.Fatal = func(err error) { fatal.Store(&err) } })
	if _, err := s.client.Put(t.Context(), formatKey, strconv.Itoa(formatVersion+1)); err != nil {
		t.Fatal(err)
	}
	s.probe()
	if err := fatal.Load(); err == nil || !strings.Contains((*err).Error(), "use a newer program") {
		t.Errorf("the server continues: %v", err)
	}
}

// A damaged value never takes more memory than the largest valid one.
func TestDecompressionIsBounded(t *testing.T) {
	large := compress(make([]byte, 0, maxPacked(make([]byte, maxCompressed))), make([]byte, maxCompressed))
	if value, err := decompress(large); err != nil || len(value) != maxCompressed {
		t.Fatalf("%d bytes, %v", len(value), err)
	}
	if compress(nil, make([]byte, maxCompressed+1)) != nil {
		t.Error("a value that is too long was compressed")
	}
	for name, packed := range map[string][]byte{
		"a length of 4 GiB":            {1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0},
		"a byte more":                  {1, 0x81, 0x80, 0x04, 0, 0},
		"another dictionary":           {byte(len(dictionaries) + 1), 1, 0, 'x'},
		"no dictionary":                {0, 1, 0, 'x'},
		"nothing":                      {},
		"a copy before the dictionary": append([]byte{1, 0x40}, bytes.Repeat([]byte{0xff}, 8)...),
	} {
		if value, err := decompress(packed); err == nil {
			t.Errorf("%s: %d bytes", name, len(value))
		}
	}
}

func FuzzDecompress(f *testing.F) {
	f.Add([]byte{1, 4, 0, 'x'})
	f.Add(compress(make([]byte, 0, maxPacked([]byte(likeAnObject))), []byte(likeAnObject)))
	f.Fuzz(func(t *testing.T, packed []byte) {
		if value, err := decompress(packed); err == nil && len(value) > maxCompressed {
			t.Errorf("%d bytes", len(value))
		}
		if again := compress(make([]byte, 0, maxPacked(packed)), packed); again != nil {
			if value, err := decompress(again); err != nil || !bytes.Equal(value, packed) {
				t.Errorf("%q is read back as %q: %v", packed, value, err)
			}
		}
	})
}

// The dictionary of a released format must never change, because existing values would be decoded differently. A better
// one needs a new format.
func TestDictionaryIsAsItWasReleased(t *testing.T) {
	if got := checksum(dictionary1); got != 0x3dfdfb69 {
		t.Errorf("dictionary 1 has the checksum %#x; a changed dictionary needs a new format", got)
	}
	if len(dictionaries) != 1 {
		t.Error("a new dictionary needs a new format: older servers do not have it")
	}
}

// TestTypicalValuesBecomeSmall checks the sizes of a placement and its decision.
func TestTypicalValuesBecomeSmall(t *testing.T) {
	now := time.Date(2027, 3, 4, 5, 6, 7, 123456789, time.UTC)
	p := &api.Placement{Metadata: api.Metadata{
		Name: "checkout-7", Namespace: "payments", UID: "8fc6fafd221069b3d8e20637a7e1c494", Generation: 3, CreatedAt: &now, ModifiedAt: &now,
		Labels: map[string]string{"owner": "payments"},
	}}
	p.SetDefaults()
	p.Status.Clusters = []string{"frankfurt-2"}
	api.SetCondition(&p.Status.Conditions, api.Condition{Type: "Scheduled", Status: api.ConditionTrue, Reason: "Scheduled"}, now)
	api.SetCondition(&p.Status.Conditions, api.Condition{Type: "Satisfied", Status: api.ConditionTrue, Reason: "AllFittingClusters"}, now)
	codec := testCodec(t, 1)
	spec, err := codec.EncodeSpec(p)
	if err != nil {
		t.Fatal(err)
	}
	status, err := codec.EncodeStatus(p)
	if err != nil {
		t.Fatal(err)
	}
	for what, value := range map[string][]byte{"spec": spec, "status": status} {
		key := etcdKey(api.KeyOf(p), Spec)
		if n := len(putValue(key, value).ValueBytes()); n > len(value)*2/5 {
			t.Errorf("%d bytes of the %s are stored as %d:\n%s", len(value), what, n, value)
		} else {
			t.Logf("%d bytes of the %s are stored as %d", len(value), what, n)
		}
	}
}
