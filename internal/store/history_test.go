package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

func withHistory(o *Options) { o.HistoryBytes = 1 << 20 }

// recorded returns statuses with a record each.
func recorded(revisions []int64, value string) []StatusWrite {
	writes := statuses(revisions, value)
	for i := range writes {
		writes[i].History = fmt.Appendf(nil, "%s moved to %s", writes[i].Key.Name, value)
	}
	return writes
}

// records returns all records of a store, in order.
func records(t testing.TB, s *Store) (all []string) {
	t.Helper()
	values, _, err := s.ReadHistory(timeout(t), HistoryUnder(HistoryLog), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		list, gap, err := HistoryRecords(v.Value)
		if err != nil || v.Damage != nil {
			t.Fatal(err, v.Damage)
		}
		if gap != nil {
			all = append(all, fmt.Sprintf("gap since %d", gap.Since))
		}
		for _, r := range list {
			all = append(all, string(r))
		}
	}
	return all
}

func TestRecordsAreThoseOfWhatWasWritten(t *testing.T) {
	s := open(t, withHistory)
	revisions := fill(t, s, 250)
	put(t, s, placement(7), "newer")
	put(t, s, placement(120), "newer")
	writes := recorded(revisions, "status")
	writes[50].History = nil // its decision does not change
	_, err := s.Derive(timeout(t), writes)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || len(conflict.Keys) != 2 {
		t.Fatalf("error %v, want two conflicts", err)
	}
	var want []string
	for i, w := range writes {
		if i != 7 && i != 120 && i != 50 {
			want = append(want, string(w.History))
		}
	}
	got := records(t, s)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%d records, want %d: %v", len(got), len(want), got)
	}
	values, _, err := s.ReadHistory(timeout(t), HistoryUnder(HistoryLog), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		list, _, _ := HistoryRecords(v.Value)
		for _, record := range list {
			name, _, _ := strings.Cut(string(record), " ")
			_, status, err := s.Read(timeout(t), api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name})
			if err != nil || status.ModRevision != v.Revision {
				t.Fatalf("%s was written at revision %d, its record at %d: %v", name, status.ModRevision, v.Revision, err)
			}
		}
	}
}

// unsure makes transactions that write statuses and then reports a timeout, or reports it and makes them later.
type unsure struct {
	clientv3.KV

	active bool
	later  bool
	kept   []func() error
}

func (u *unsure) Txn(ctx context.Context) clientv3.Txn {
	return &unsureTxn{Txn: u.KV.Txn(context.WithoutCancel(ctx)), u: u}
}

type unsureTxn struct {
	clientv3.Txn

	u      *unsure
	status bool
}

func (t *unsureTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }
func (t *unsureTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *unsureTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.status = slices.ContainsFunc(ops, func(op clientv3.Op) bool { return bytes.HasPrefix(op.KeyBytes(), []byte(statusPrefix)) })
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *unsureTxn) Commit() (*clientv3.TxnResponse, error) {
	switch {
	case !t.u.active || !t.status:
		return t.Txn.Commit()
	case t.u.later:
		t.u.kept = append(t.u.kept, func() error { _, err := t.Txn.Commit(); return err })
	default:
		if _, err := t.Txn.Commit(); err != nil {
			return nil, err
		}
	}
	return nil, context.DeadlineExceeded
}

// TestRecordsAreWrittenOnce repeats decisions whose outcome was unknown.
func TestRecordsAreWrittenOnce(t *testing.T) {
	for name, later := range map[string]bool{"it had happened": false, "it had not": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t, withHistory)
			kv, _ := interpose(t, s, func(kv clientv3.KV) *unsure { return &unsure{KV: kv} })
			revisions := fill(t, s, 3)
			kv.active, kv.later = true, later
			for range 2 { // the second is not answered either
				if _, err := s.Derive(timeout(t), recorded(revisions, "a")); !errors.Is(err, ErrUncertain) {
					t.Fatalf("error %v, want ErrUncertain", err)
				}
			}
			kv.active = false
			if later { // writes to an embedded store do not overtake each other
				if err := kv.kept[0](); err != nil {
					t.Fatal(err)
				}
				for _, late := range kv.kept[1:] {
					if err := late(); err != nil {
						t.Fatal(err)
					}
				}
			}
			revision, err := s.Derive(timeout(t), recorded(revisions, "a"))
			if err != nil {
				t.Fatal(err)
			}
			_, status, err := s.Read(timeout(t), placement(1))
			if err != nil || status.ModRevision != revision {
				t.Fatalf("the status was written at %d, Derive says %d: %v", status.ModRevision, revision, err)
			}
			if _, err := s.Derive(timeout(t), recorded(revisions, "b")); err != nil {
				t.Fatal(err)
			}
			want := []string{
				"p-00000 moved to a", "p-00001 moved to a", "p-00002 moved to a", "p-00000 moved to b", "p-00001 moved to b", "p-00002 moved to b",
			}
			if got := records(t, s); !slices.Equal(got, want) {
				t.Fatalf("records %v, want %v", got, want)
			}
		})
	}
}

// TestSealingSettlesWhatWasNotAnswered seals the records of a transaction whose outcome the store does not know yet.
func TestSealingSettlesWhatWasNotAnswered(t *testing.T) {
	s := open(t, withHistory)
	kv, _ := interpose(t, s, func(kv clientv3.KV) *unsure { return &unsure{KV: kv} })
	revisions := fill(t, s, 3)
	kv.active = true
	if _, err := s.Derive(timeout(t), recorded(revisions, "a")); !errors.Is(err, ErrUncertain) {
		t.Fatalf("error %v, want ErrUncertain", err)
	}
	kv.active = false
	values, at, err := s.ReadHistory(timeout(t), HistoryUnder(HistoryLog), 0, 0)
	if err != nil || len(values) != 1 {
		t.Fatal(values, err)
	}
	_, err = s.ChangeHistory(timeout(t), HistoryChange{Put: map[string][]byte{"sealed": []byte("chunk")}, Delete: []HistoryRange{HistoryUnder(HistoryLog)}, Seen: at})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := s.Derive(timeout(t), recorded(revisions[:2], "a"))
	if err != nil || revision != values[0].Revision {
		t.Fatalf("derived at %d with %v, it was written at %d", revision, err, values[0].Revision)
	}
	other := recorded(revisions, "b")[2:]
	if _, err := s.Derive(timeout(t), other); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("error %v for another decision, which does not know of the first", err)
	}
	if got := records(t, s); got != nil {
		t.Fatalf("records %v besides those that are sealed", got)
	}
	if _, err := s.Derive(timeout(t), other); err != nil {
		t.Fatal(err)
	}
}

func TestChangeOfHistoryIsCompared(t *testing.T) {
	s := open(t, withHistory)
	ctx := timeout(t)
	first, err := s.ChangeHistory(ctx, HistoryChange{Key: "head", Put: map[string][]byte{"head": []byte("1"), "log/x": []byte("v")}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.ChangeHistory(ctx, HistoryChange{Key: "head", At: first, Put: map[string][]byte{"head": []byte("2")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]HistoryChange{
		"the head has changed":  {Key: "head", At: first, Put: map[string][]byte{"head": []byte("3")}},
		"a value came in later": {Key: "head", At: second, Put: map[string][]byte{"head": []byte("3")}, Delete: []HistoryRange{HistoryUnder("log/")}, Seen: first - 1},
	} {
		if _, err := s.ChangeHistory(ctx, change); !errors.Is(err, ErrHistoryChanged) {
			t.Errorf("%s: error %v, want ErrHistoryChanged", name, err)
		}
	}
	if _, err := s.ChangeHistory(ctx, HistoryChange{Delete: []HistoryRange{HistoryUnder("log/")}, Seen: first, Shrinks: true}); err != nil {
		t.Fatal(err)
	}
	values, _, err := s.ReadHistory(ctx, HistoryRange{"", "~"}, 0, 0)
	if err != nil || len(values) != 2 || string(values[1].Value) != "2" { // and who led
		t.Fatalf("%v, %v", values, err)
	}
}

func TestWhoLedWithoutRecordsLeavesAGap(t *testing.T) {
	dir := t.TempDir()
	here := func(o *Options) { o.DataDir = dir }
	start := func(change ...func(*Options)) *Store { return open(t, append(change, here)...) }
	stop := func(s *Store) {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := start(withHistory)
	revisions := fill(t, s, 1)
	if _, err := s.Derive(timeout(t), recorded(revisions, "a")); err != nil {
		t.Fatal(err)
	}
	stop(s)
	s = start(withHistory)
	if got := records(t, s); !slices.Equal(got, []string{"p-00000 moved to a"}) {
		t.Fatalf("records %v after a restart", got)
	}
	stop(s)
	s = start() // as a server of the previous version
	if _, err := s.Derive(timeout(t), statuses(revisions, "b")); err != nil {
		t.Fatal(err)
	}
	stop(s)
	s = start(withHistory)
	if _, err := s.Derive(timeout(t), recorded(revisions, "c")); err != nil {
		t.Fatal(err)
	}
	stop(s)
	s = start(withHistory)
	got := records(t, s)
	if len(got) != 3 || !strings.HasPrefix(got[1], "gap since ") || got[2] != "p-00000 moved to c" {
		t.Fatalf("records %v, want a gap before the last one", got)
	}
}

func TestWhoLedWithoutRecordsAmongSeveralLeavesAGap(t *testing.T) {
	address, _ := storetest.Etcd(t)
	lead := func(change ...func(*Options)) (*Store, *Term) {
		s := open(t, append(change, func(o *Options) { o.DataDir, o.Endpoints = "", []string{"http://" + address} })...)
		term, err := s.Campaign(timeout(t))
		if err != nil {
			t.Fatal(err)
		}
		return s, term
	}
	s, term := lead(withHistory)
	revisions := fill(t, s, 1)
	if _, err := s.Derive(timeout(t), recorded(revisions, "a")); err != nil {
		t.Fatal(err)
	}
	term.Resign()
	s, term = lead(withHistory)
	if _, err := s.Derive(timeout(t), recorded(revisions, "b")); err != nil {
		t.Fatal(err)
	}
	term.Resign()
	_, term = lead() // as a server of the previous version
	term.Resign()
	s, _ = lead(withHistory)
	if got := records(t, s); len(got) != 3 || got[1] != "p-00000 moved to b" || !strings.HasPrefix(got[2], "gap since ") {
		t.Fatalf("records %v, want a gap at the end", got)
	}
}

func TestHistoryDoesNotCountAgainstTheQuota(t *testing.T) {
	s := open(t, func(o *Options) { o.QuotaBytes, o.HistoryBytes = 16*mebibyte, 32*mebibyte })
	filler := make([]byte, mebibyte)
	for i := range filler {
		filler[i] = byte(i * i >> 3)
	}
	for i := range 30 {
		filler[0] = byte(i)
		if _, err := s.ChangeHistory(timeout(t), HistoryChange{Put: map[string][]byte{fmt.Sprint("sealed/", i): filler}}); err != nil {
			t.Fatalf("after %d MiB: %v", i, err)
		}
	}
	s.HistoryTakes(30 * mebibyte)
	put(t, s, placement(1), "spec")
	// The database has pages that are free only after its next transactions, the more the slower they are.
	eventually.True(t, "the history does not count against the quota", func() bool {
		s.underPressure(timeout(t))
		put(t, s, placement(1), "spec")
		return s.Info().InUseBytes <= 2*mebibyte
	})
}

func TestDamagedHistoryCostsNothingElse(t *testing.T) {
	s := open(t, withHistory)
	revisions := fill(t, s, 2)
	if _, err := s.Derive(timeout(t), recorded(revisions, "a")); err != nil {
		t.Fatal(err)
	}
	values, _, err := s.ReadHistory(timeout(t), HistoryUnder(HistoryLog), 0, 0)
	if err != nil || len(values) != 1 {
		t.Fatal(values, err)
	}
	if _, err := s.Client().Put(timeout(t), historyPrefix+values[0].Key, "\x84nonsense"); err != nil {
		t.Fatal(err)
	}
	values, _, err = s.ReadHistory(timeout(t), HistoryUnder(HistoryLog), 0, 0)
	if err != nil || len(values) != 1 || !errors.Is(values[0].Damage, ErrDamaged) {
		t.Fatalf("%v, %v, want a damaged value", values, err)
	}
	dir := s.options.DataDir
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Check(dir)
	if err != nil || len(report.Findings) != 1 || report.Findings[0].Fatal || !strings.Contains(report.Findings[0].What, "history") {
		t.Fatalf("findings %v, %v, want one about the history that is not fatal", report.Findings, err)
	}
}

func TestRecordsOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records [][]byte
		for range rapid.IntRange(0, 5).Draw(t, "records") {
			records = append(records, bytes.Repeat([]byte(rapid.StringN(1, 5, -1).Draw(t, "text")), rapid.IntRange(0, 20_000).Draw(t, "times")))
		}
		got, gap, err := HistoryRecords(joinRecords(records))
		if err != nil || gap != nil || !slices.EqualFunc(got, records, bytes.Equal) {
			t.Fatalf("%d records, %v, %v", len(got), gap, err)
		}
	})
}

func FuzzHistoryRecords(f *testing.F) {
	f.Add(joinRecords([][]byte{[]byte("a"), nil, []byte("bc")}))
	f.Add(joinRecords([][]byte{bytes.Repeat([]byte("a"), maxCompressed)}))
	f.Add(gapValue(7))
	f.Fuzz(func(t *testing.T, value []byte) {
		list, gap, err := HistoryRecords(value)
		if err != nil && (list != nil || gap != nil || !errors.Is(err, ErrDamaged)) {
			t.Fatalf("%v and %v with %v", list, gap, err)
		}
		if err == nil && gap == nil {
			again, _, err := HistoryRecords(joinRecords(list))
			if err != nil || !slices.EqualFunc(again, list, bytes.Equal) {
				t.Fatalf("%v became %v: %v", list, again, err)
			}
		}
	})
}
