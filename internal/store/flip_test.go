package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// flipsVariable sets the number of flips, for longer tests.
const flipsVariable = "SCHEDULER_STORE_TEST_FLIPS"

// worn creates a data directory with some history, and returns its contents.
func worn(t *testing.T) (dir string, want map[partKey][]byte) {
	t.Helper()
	dir, want = t.TempDir(), map[partKey][]byte{}
	s := open(t, func(o *Options) { o.DataDir = dir })
	ctx := timeout(t)
	const objects = 300
	for round := range 3 {
		for n := range objects {
			key := placement(n)
			if round == 2 && n%7 == 0 {
				remove(t, s, key)
				delete(want, partKey{key, Spec})
				delete(want, partKey{key, Status})
				continue
			}
			spec := fmt.Appendf(nil, `{"round":%d,"name":"%d","text":"%s"}`, round, n, bytes.Repeat([]byte("s"), n))
			status := fmt.Appendf(nil, `{"round":%d,"of":"%d"}`, round, n)
			revision := put(t, s, key, string(spec))
			if _, err := s.Derive(ctx, []StatusWrite{{Key: key, Value: status, SpecRevision: revision}}); err != nil {
				t.Fatal(err)
			}
			want[partKey{key, Spec}], want[partKey{key, Status}] = spec, status
		}
		if round == 0 {
			if err := s.Compact(ctx, s.revision.Load()-100); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

// Flip one bit or one byte anywhere in the database or the log. Either the store does not open, or every object is as
// it was written or reported as damaged. None is missing, and no deleted one is back.
func TestFlippedByteIsNeverServed(t *testing.T) {
	t.Parallel()
	flips := 40
	if text := os.Getenv(flipsVariable); text != "" {
		var err error
		if flips, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	random := seeded.Rand(t)
	dir, want := worn(t)
	var files []string
	for _, pattern := range []string{"snap/db", "wal/*.wal"} {
		paths, err := filepath.Glob(filepath.Join(memberDir(dir), "member", pattern))
		if err != nil || len(paths) != 1 {
			t.Fatal(paths, err)
		}
		files = append(files, paths...)
	}
	outcomes := map[string]int{}
	for n := range flips {
		path := files[min(n%4, 1)^1] // three in four are in the database
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at, mask := random.IntN(end(content)), byte(1)<<random.IntN(8)
		if n%5 == 0 {
			mask = byte(1 + random.IntN(255))
		}
		name, _ := filepath.Rel(dir, path)
		what := fmt.Sprintf("flip %d: byte %d of %s, mask %#x", n, at, name, mask)
		content[at] ^= mask
		outcome, err := afterFlip(t, dir, name, content, want)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		outcomes[filepath.Base(filepath.Dir(path))+": "+outcome]++
	}
	t.Logf("%d flips: %v", flips, outcomes)
	if flips >= 40 && len(outcomes) < 3 {
		t.Errorf("only the outcomes %v", outcomes)
	}
}

// afterFlip opens a copy of a store with changed content of one file. It returns the outcome, and an error if that
// outcome is never allowed.
func afterFlip(t *testing.T, from, name string, content []byte, want map[partKey][]byte) (outcome string, err error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "flip-*") //nolint:usetesting // removed after each of many iterations
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.CopyFS(dir, os.DirFS(from)), os.WriteFile(filepath.Join(dir, name), content, 0o600)); err != nil {
		t.Fatal(err)
	}
	report, err := Check(dir)
	if err != nil {
		return "", fmt.Errorf("check: %w", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	s, err := Open(ctx, Options{
		DataDir: dir, NoFsync: true, MinFreeBytes: 1, MarkInterval: time.Hour, RequestTimeout: storetest.Patience, Patience: storetest.Patience,
		Fatal: endsTheTests(t),
	})
	if err != nil {
		if !errors.Is(err, ErrDamaged) && !bytes.Contains([]byte(err.Error()), []byte("restore")) {
			return "", fmt.Errorf("it does not open, and does not say what to do: %w", err)
		}
		if len(report.Findings) == 0 {
			return "refused, unseen by check", nil
		}
		return "refused", nil
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	missing, damaged := maps.Clone(want), 0
	_, err = s.Load(ctx, 0, func(r Record) error {
		value, there := missing[partKey{r.Key, r.Part}]
		delete(missing, partKey{r.Key, r.Part})
		switch {
		case r.Damage != nil:
			damaged++
		case !there:
			return fmt.Errorf("the %s of %s is back", r.Part, r.Key)
		case !bytes.Equal(r.Value, value):
			return fmt.Errorf("the %s of %s is %q, %q was written", r.Part, r.Key, r.Value, value)
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case len(missing) > 0:
		return "", fmt.Errorf("%d values are missing", len(missing))
	case damaged > 0 && len(report.Findings) == 0:
		return "", errors.New("check has found nothing")
	case damaged > 0:
		return "named", nil
	}
	return "intact", nil
}

// The findings of Check name the object.
func TestCheckNamesTheObject(t *testing.T) {
	dir := t.TempDir()
	s := open(t, func(o *Options) { o.DataDir = dir })
	put(t, s, placement(1), "one")
	put(t, s, placement(2), "two")
	bad := raw(t, s, etcdKey(placement(2), Spec))
	bad[len(bad)-1] ^= 1
	damage(t, s, etcdKey(placement(2), Spec), bad)
	if _, err := Check(dir); err == nil {
		t.Error("Check() of a running server succeeded")
	} else if locked := (&LockedError{}); !errors.As(err, &locked) || locked.Owner != os.Getpid() {
		t.Error(err)
	}
	backup, err := os.Create(filepath.Join(t.TempDir(), "backup"))
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	if err := s.Backup(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, backup.Name()} {
		report, err := Check(path)
		if err != nil || len(report.Findings) != 1 || report.Findings[0].Key != (api.Key{Kind: "placement", Namespace: "shop", Name: "p-00002"}) || report.Findings[0].Fatal {
			t.Errorf("%s: %+v, %v", path, report, err)
		}
	}
}
