package store

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"go.uber.org/zap"
)

func TestHistoryIsKeptByAgeAndNumber(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &Store{options: Options{KeepHistory: 10 * time.Minute, KeepRevisions: 1000, Now: func() time.Time { return now }}}
	history := []moment{{now, 0}}
	step := func(revision int64) (target int64) {
		now = now.Add(time.Minute)
		s.revision.Store(revision)
		history, target = s.age(history)
		return target
	}
	for minute := int64(1); minute < 10; minute++ {
		if target := step(minute * 10); target > 0 {
			t.Fatalf("minute %d: compacted to %d, want nothing compacted yet", minute, target)
		}
	}
	if target := step(100); target != 0 {
		t.Fatalf("minute 10: compacted to %d, want 0", target)
	}
	if target := step(110); target != 10 {
		t.Fatalf("minute 11: compacted to %d, want 10, that of minute 1", target)
	}
	if target := step(5000); target != 4000 {
		t.Fatalf("after a burst: compacted to %d, want the last 1000 revisions kept", target)
	}
	if len(history) > 11 {
		t.Fatalf("%d moments are remembered", len(history))
	}
}

func TestHistoryGoesByItself(t *testing.T) {
	s := open(t, func(o *Options) { o.KeepRevisions, o.CompactInterval = 5, 10*time.Millisecond })
	ctx := timeout(t)
	old := put(t, s, placement(1), "v")
	for range 20 {
		put(t, s, placement(1), "v")
	}
	eventually.True(t, "the old revision is compacted", func() bool {
		_, _, _, _, err := s.Page(ctx, "placement", "", "", 1, old)
		if err != nil && !errors.Is(err, ErrCompacted) {
			t.Fatal(err)
		}
		return err != nil
	})
}

// noise returns data that cannot be compressed.
func noise(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

func TestQuotaRefusesGrowthAndHeals(t *testing.T) {
	t.Parallel()
	s := open(t, func(o *Options) {
		o.QuotaBytes = 24 * mebibyte
		o.WatchdogInterval = 20 * time.Millisecond
	})
	ctx := timeout(t)
	value := noise(256 << 10)
	n := 0
	var err error
	for n < 1000 {
		_, err = s.Commit(ctx, Write{Key: placement(n), Value: value, Expect: Any})
		if errors.Is(err, ErrUncertain) || errors.Is(err, ErrUnavailable) {
			continue // the machine is busy
		}
		if n++; err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("after %d writes: %v", n, err)
	}
	if spec, _, err := s.Read(ctx, placement(0)); err != nil || !bytes.Equal(spec.Value, value) {
		t.Fatalf("reads must continue: %v", err)
	}
	for i := range n {
		remove(t, s, placement(i)) // deletes must be possible
	}
	// After deletion and compaction, the space is available again without a restart.
	eventually.True(t, "there is free space again", func() bool {
		_, err = s.Commit(ctx, Write{Key: placement(0), Value: value, Expect: Any})
		return !errors.Is(err, ErrFull) && !errors.Is(err, ErrUncertain) && !errors.Is(err, ErrUnavailable)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// If many writes run when the quota is exhausted, those that failed were not written, and the others were. On a slow
// machine etcd may give up on a write that waits behind the others: that one may have been written.
func TestRefusedForTheQuotaIsNotWritten(t *testing.T) {
	t.Parallel()
	s := open(t, func(o *Options) {
		o.QuotaBytes = 24 * mebibyte
		o.WatchdogInterval, o.CompactInterval = time.Hour, time.Hour // without watchdog and compaction
	})
	ctx := timeout(t)
	const writers = 32
	var running sync.WaitGroup
	var mu sync.Mutex
	written, uncertain, refused := map[int]bool{}, map[int]bool{}, 0
	for w := range writers {
		running.Go(func() {
			value := noise(256 << 10)
			for n := w; ; n += writers {
				_, err := s.Commit(ctx, Write{Key: placement(n), Value: value, Expect: 0})
				if errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
					n -= writers // the disk was slow, and this write was not attempted
					select {     // a busy loop would slow the disk further
					case <-ctx.Done():
					case <-time.After(10 * time.Millisecond):
					}
					continue
				}
				mu.Lock()
				switch {
				case err == nil:
					written[n] = true
				case errors.Is(err, ErrUncertain) && ctx.Err() == nil:
					uncertain[n], err = true, nil
				case errors.Is(err, ErrFull):
					refused++
				default:
					t.Errorf("placement %d: %v", n, err)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	running.Wait()
	if refused != writers {
		t.Fatalf("%d of %d writers were rejected, want all", refused, writers)
	}
	_, err := s.Load(ctx, 0, func(r Record) error {
		n, err := strconv.Atoi(strings.TrimPrefix(r.Key.Name, "p-"))
		if err != nil {
			return err
		}
		if !written[n] && !uncertain[n] {
			t.Errorf("placement %d was rejected, but exists", n)
		}
		delete(written, n)
		return nil
	})
	if err != nil || len(written) > 0 {
		t.Errorf("error %v, missing: %v", err, written)
	}
}

func TestRaisedAlarmSurvivesARestartAndHeals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, func(o *Options) {
		o.DataDir, o.QuotaBytes = dir, 16*mebibyte
		o.WatchdogInterval = time.Hour // without watchdog
	})
	ctx := timeout(t)
	r := put(t, s, placement(0), "spec")
	value := noise(256 << 10)
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		// Write the same object again and again, so that history exhausts the quota.
		_, err = s.Derive(ctx, []StatusWrite{{Key: placement(0), Value: value, SpecRevision: r}})
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("error %v, want ErrFull", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, func(o *Options) {
		o.DataDir, o.QuotaBytes = dir, 16*mebibyte
		o.WatchdogInterval = 20 * time.Millisecond
	})
	eventually.True(t, "there is free space again", func() bool {
		_, err = s.Derive(ctx, []StatusWrite{{Key: placement(0), Value: []byte("v"), SpecRevision: r}})
		return !errors.Is(err, ErrFull)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFatalEntriesAreReportedOnce(t *testing.T) {
	var logged strings.Builder
	var reasons []error
	s := &Store{options: Options{Fatal: func(err error) { reasons = append(reasons, err) }}}
	s.died = func(error) {}
	logger := newZapLogger(slog.New(slog.NewTextHandler(&logged, nil)), s.fatal)
	for _, log := range []func(string, ...zap.Field){logger.Fatal, logger.Panic} {
		returned := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			log("failed to commit tx", zap.Error(errors.New("no space left on device")), zap.Int("n", 1))
			returned = true
		}()
		<-done
		if returned {
			t.Fatal("etcd continued after a fatal error")
		}
	}
	if len(reasons) != 1 || reasons[0].Error() != "failed to commit tx: no space left on device" {
		t.Fatalf("unexpected reasons %v", reasons)
	}
	if text := logged.String(); !strings.Contains(text, `message="failed to commit tx"`) || !strings.Contains(text, "n=1") {
		t.Fatalf("unexpected log %q", text)
	}
}

func TestInfoAndMetrics(t *testing.T) {
	s := open(t)
	revision := put(t, s, placement(1), "v")
	info := s.Info()
	if info.Mode != "embedded" || info.ClusterID == "" || info.Revision != revision || info.SizeBytes == 0 || info.InUseBytes == 0 || info.QuotaBytes < leastQuota || info.QuotaBytes > mostQuota {
		t.Fatalf("unexpected info %+v", info)
	}
	registry := prometheus.NewRegistry()
	for _, c := range s.Collectors() {
		registry.MustRegister(c)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		values[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	for _, name := range []string{"scheduler_store_transaction_seconds", "scheduler_store_size_bytes", "scheduler_store_disk_free_bytes", "scheduler_store_quota_bytes"} {
		if values[name] == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	if values["scheduler_store_revision"] != float64(revision) || values["scheduler_store_refuses_writes"] != 0 {
		t.Errorf("unexpected metrics %v", values)
	}
}

func TestDefragmentingGoesThroughTheServer(t *testing.T) {
	s := open(t)
	put(t, s, placement(1), "v")
	s.noSpace.Store(true)
	if err := s.makeRoom(timeout(t)); err != nil {
		t.Fatal(err)
	}
	if s.noSpace.Load() {
		t.Fatal("the alarm is still on")
	}
	alarms, err := s.client.AlarmList(t.Context())
	if err != nil || len(alarms.Alarms) != 0 {
		t.Fatalf("alarms %v, error %v, want none", alarms, err)
	}
}

func TestDefaultQuota(t *testing.T) {
	const gibi = 1 << 30
	for disk, want := range map[int64]int64{200 * mebibyte: 4 * gibi, 8 * gibi: 4 * gibi, 12 * gibi: 6 * gibi, 16 * gibi: 8 * gibi, 4096 * gibi: 8 * gibi} {
		if got := quotaOf(disk); got != want {
			t.Errorf("quotaOf(%d MiB) = %d MiB, want %d MiB", disk/mebibyte, got/mebibyte, want/mebibyte)
		}
	}
}
