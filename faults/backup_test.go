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
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// TestFaultBackup takes backups while many write, restores them elsewhere, and
// damages them.
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
		// Everything that was acknowledged before is there, or what came after.
		for key, number := range before {
			object := there[key]
			if object == nil && w.ledger.deletedAfter(key, number) {
				continue
			}
			if object == nil || numberOf(object) < number || numberOf(object) > last+writers {
				t.Errorf("round %d: %s was %d when the backup began, and is %+v in it", round, key, number, object)
			}
		}
		p.stop()

		// A damaged backup is refused, and nothing is left of the attempt.
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
				t.Errorf("round %d: what is left of a backup with %s can be taken for a store: %v", round, what, err)
			}
		}
		spoil("its end cut off", content[:len(content)*(1+w.random.IntN(8))/9])
		flipped := append([]byte{}, content...)
		flipped[len(flipped)/4+w.random.IntN(len(flipped)/2)] ^= 16
		spoil("a bit turned over", flipped)
	}
	w.judge()
}

// numbers are the numbers of everything that is acknowledged to be there.
func (l *ledger) numbers() map[api.Key]int64 {
	out := map[api.Key]int64{}
	for key, s := range l.acknowledged() {
		out[key] = s.number
	}
	return out
}

// deletedAfter reports that an object was, or may have been, deleted after it
// had a number; it may be there again.
func (l *ledger) deletedAfter(key api.Key, number int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key].deleted > number
}

// goldenVariable says of which binary golden data are to be made, as in
// format-1=/path/to/scheduler-server, and goldenDir is where they are: a data
// directory for each format of the store, as a server that was killed left it,
// with what it had acknowledged.
const (
	goldenVariable = "FAULTS_GOLDEN"
	goldenDir      = "testdata"
	goldenObjects  = "objects.json"
)

// TestFaultUpgrade starts on the data of earlier programs, and offers the data
// of a newer one.
func TestFaultUpgrade(t *testing.T) {
	f := begin(t, 27)
	archives, err := filepath.Glob(filepath.Join(goldenDir, "*.tar.gz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("there are no golden data: %v", err)
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
				t.Errorf("%s: acknowledged was\n%+v\nand now there is\n%+v", archive, object, is)
				continue
			}
			if key := api.KeyOf(object); !sameClusters(decisions(there)[key], decisions(map[api.Key]api.Object{key: object})[key]) {
				t.Errorf("%s: the upgrade moved %s", archive, key)
			}
		}
		// It is an ordinary store from now on.
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

	// A program whose store has a higher format.
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
		t.Errorf("on the data of a newer program this one ended with %d:\n%s", code, old.stderr)
	}
	t.Logf("refused after %s", time.Since(began).Round(time.Millisecond))
	again := launch(t, nil, newer, embedded(dir)...).awaitReady()
	if _, err := again.client.Get(context.Background(), api.KeyOf(placement("new", "g0", 1, 1))); err != nil {
		t.Errorf("the attempt has changed the data of the newer program: %v", err)
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

// TestMakeGoldenData makes golden data of another binary when it is asked to;
// otherwise it checks that those there are complete.
func TestMakeGoldenData(t *testing.T) {
	name, binary, ok := strings.Cut(os.Getenv(goldenVariable), "=")
	if !ok {
		if archives, err := filepath.Glob(filepath.Join(goldenDir, "*.tar.gz")); err != nil || len(archives) == 0 {
			t.Errorf("there are no golden data: %v", err)
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
		_ = os.Remove(filepath.Join(dir, spare)) // made again by the next start
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
