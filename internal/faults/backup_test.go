//go:build faults

package faults

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// TestFaultBackup takes backups during writes, restores them elsewhere, and damages them.
func TestFaultBackup(t *testing.T) {
	f := begin(t, 29)
	dir := dataDir(t)
	w := newWorld(t, f, embedded(dir)...)
	for round := range rounds(2, 15) {
		w.startWriting()
		w.awaitWrites(30)
		before := w.ledger.numbers()
		file := filepath.Join(t.TempDir(), "backup")
		out, code, err := command("backup", "--endpoint", w.p().url, file)
		if err != nil || code != 0 {
			t.Fatalf("backup: %v %d %s", err, code, out)
		}
		last := w.number.Load()
		w.awaitWrites(10)
		w.stopWriting()
		f.happened()

		restored := dataDir(t)
		if err := os.MkdirAll(restored, 0o700); err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(filepath.Join(dir, "seal.key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(restored, "seal.key"), key, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code, err := command("restore", "--data-dir", restored, file); err != nil || code != 0 {
			t.Fatalf("restore: %v %d %s", err, code, out)
		}
		p := launch(t, nil, serverBinary, embedded(restored)...).awaitReady()
		there, err := objects(p)
		if err != nil {
			t.Fatal(err)
		}
		// Everything that was acknowledged before exists, or a later version of it.
		for key, number := range before {
			object := there[key]
			if object == nil && w.ledger.deletedAfter(key, number) {
				continue
			}
			if object == nil || numberOf(object) < number || numberOf(object) > last+writers {
				t.Errorf("round %d: %s had number %d when the backup began, but is %+v in the backup", round, key, number, object)
			}
		}
		p.stop()

		// A damaged backup is rejected, and nothing remains of the attempt.
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		spoil := func(what string, spoilt []byte) {
			t.Helper()
			bad := filepath.Join(t.TempDir(), "bad")
			if err := os.WriteFile(bad, spoilt, 0o600); err != nil {
				t.Fatal(err)
			}
			target := dataDir(t)
			out, code, err := command("restore", "--data-dir", target, bad)
			if err != nil || code == 0 || strings.Contains(out, "goroutine ") {
				t.Errorf("round %d: a backup with %s was restored: %v %d %s", round, what, err, code, out)
			}
			f.happened()
			if _, err := os.Stat(filepath.Join(target, "etcd")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("round %d: the remains of a backup with %s can be taken for a store: %v", round, what, err)
			}
		}
		spoil("its end cut off", content[:len(content)*(1+w.random.IntN(8))/9])
		flipped := append([]byte{}, content...)
		flipped[len(flipped)/4+w.random.IntN(len(flipped)/2)] ^= 16
		spoil("a bit turned over", flipped)
	}
	w.judge()
}

// numbers returns the numbers of all objects whose existence has been acknowledged.
func (l *ledger) numbers() map[api.Key]int64 {
	out := map[api.Key]int64{}
	for key, s := range l.acknowledged() {
		out[key] = s.number
	}
	return out
}

// deletedAfter reports whether an object was, or may have been, deleted after it had a number. It may have been created
// again.
func (l *ledger) deletedAfter(key api.Key, number int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key].deleted > number
}

// goldenVariable names the binary with which to create golden data, as in format-3=/path/to/scheduler-server. goldenDir
// contains the data: one data directory for each format of the store, as a killed server left it, with the writes that
// it had acknowledged.
const (
	goldenVariable = "FAULTS_GOLDEN"
	goldenDir      = "testdata"
	goldenObjects  = "objects.json"
)

// TestFaultUpgrade starts on data of earlier programs, and rejects data of a newer one.
func TestFaultUpgrade(t *testing.T) {
	f := begin(t, 27)
	archives, err := filepath.Glob(filepath.Join(goldenDir, "*.tar.gz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no golden data: %v", err)
	}
	for _, archive := range archives {
		dir := dataDir(t)
		unpack(t, archive, dir)
		text, err := os.ReadFile(filepath.Join(dir, goldenObjects))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, goldenObjects)); err != nil {
			t.Fatal(err)
		}
		var was []json.RawMessage
		if err := json.Unmarshal(text, &was); err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, fault: f, binary: serverBinary, args: embedded(dir), ledger: newLedger(), seen: newHistory(), random: seeded.Rand(t)}
		w.start()
		f.happened()
		there, err := objects(w.p())
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range was {
			object, err := api.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			is := there[api.KeyOf(object)]
			if is == nil || is.Meta().UID != object.Meta().UID || !reflect.DeepEqual(is.SpecPart(), object.SpecPart()) {
				t.Errorf("%s: acknowledged\n%+v\nbut got\n%+v", archive, object, is)
				continue
			}
			if key := api.KeyOf(object); !sameClusters(decisions(there)[key], decisions(map[api.Key]api.Object{key: object})[key]) {
				t.Errorf("%s: the upgrade moved %s", archive, key)
			}
		}
		// From now on it is an ordinary store.
		w.ledger.adopt(there)
		w.number.Store(1 << 20)
		w.startWriting()
		w.awaitWrites(20)
		w.p().kill()
		w.stopWriting()
		w.start()
		w.judge()
		w.p().kill()
	}

	// A program with a newer store format.
	newer, err := altered()
	if err != nil {
		t.Fatal(err)
	}
	dir := dataDir(t)
	p := launch(t, nil, newer, embedded(dir)...).awaitReady()
	if _, err := put(p, placement("new", "g0", 1, 1)); err != nil {
		t.Fatal(err)
	}
	p.stop()
	f.happened()
	began := time.Now()
	old := launch(t, nil, serverBinary, embedded(dir)...)
	if code := old.awaitExit(eventually.Limit); code != 1 || !old.stderr.Contains("use a newer program") {
		t.Errorf("exit code %d on the data of a newer server, want 1 with the reason:\n%s", code, old.stderr)
	}
	t.Logf("rejected after %s", time.Since(began).Round(time.Millisecond))
	again := launch(t, nil, newer, embedded(dir)...).awaitReady()
	if _, err := again.client.Get(context.Background(), api.KeyOf(placement("new", "g0", 1, 1))); err != nil {
		t.Errorf("the attempt modified the data of the newer server: %v", err)
	}
}

func unpack(t testing.TB, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(zipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+header.Name))
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMakeGoldenData creates golden data with another binary on request. Otherwise it checks that the existing data is
// complete.
func TestMakeGoldenData(t *testing.T) {
	name, binary, ok := strings.Cut(os.Getenv(goldenVariable), "=")
	if !ok {
		if archives, err := filepath.Glob(filepath.Join(goldenDir, "*.tar.gz")); err != nil || len(archives) == 0 {
			t.Errorf("no golden data: %v", err)
		}
		return
	}
	dir := dataDir(t)
	w := &world{t: t, binary: binary, args: embedded(dir), ledger: newLedger(), seen: newHistory(), random: seeded.Rand(t)}
	w.start()
	w.fill()
	there, err := objects(w.p())
	if err != nil {
		t.Fatal(err)
	}
	w.p().kill()
	var list []api.Object
	for _, object := range there {
		list = append(list, object)
	}
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	pack(t, filepath.Join(goldenDir, name+".tar.gz"), dir, text)
}

func pack(t testing.TB, archive, dir string, list []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, goldenObjects), list, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, spare := range []string{"LOCK", "RESERVE", "etcd/member/wal/0.tmp", "etcd/member/wal/1.tmp"} {
		_ = os.Remove(filepath.Join(dir, spare)) // created again by the next start
	}
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewWriter(zipped)
	if err := errors.Join(files.AddFS(os.DirFS(dir)), files.Close(), zipped.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
}
