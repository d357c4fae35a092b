package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testOptions(path string) Options {
	return Options{
		File: path, MaxBytes: 1 << 20, MaxFiles: 3, Server: "one", Version: "1.2.3",
		Now: func() time.Time { return time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("", 3600)) },
	}
}

func openLog(t *testing.T, options Options) *Log {
	t.Helper()
	l, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// entriesIn returns the entries of a file; every line must be one.
func entriesIn(t *testing.T, path string) []Entry {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var entries []Entry
	for line := range strings.Lines(string(data)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		entries = append(entries, e)
	}
	return entries
}

func write(t *testing.T, l *Log, id string) {
	t.Helper()
	if err := l.Write(Entry{Stage: StageDone, RequestID: id}); err != nil {
		t.Fatal(err)
	}
}

func TestLinesHaveTimeAndServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "audit.log")
	l := openLog(t, testOptions(path))
	write(t, l, "r1")
	entries := entriesIn(t, path)
	if len(entries) != 2 || entries[0].Stage != StageStarted || entries[0].Version != "1.2.3" {
		t.Fatalf("got %+v, want a line for the start of the server, then the request", entries)
	}
	for _, e := range entries {
		if e.Server != "one" || e.Time.Format(time.RFC3339) != "2026-03-01T12:00:00Z" {
			t.Errorf("got %+v, want the server and the time in UTC", e)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
}

func TestRotationKeepsEveryLineOfTheKeptFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	options := testOptions(path)
	options.MaxFiles = 2
	l := openLog(t, options)
	reason := strings.Repeat("x", 64<<10)
	var last int
	for last = range 100 { // 6.4 MiB
		if err := l.Write(Entry{RequestID: fmt.Sprint(last), Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil { // waits until old files are deleted
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "audit*.log"))
	if err != nil || len(files) != 3 {
		t.Fatalf("got %v (%v), want the file and two older ones", files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > 1<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v (%v), want at most 1 MiB and mode 0600", file, info, err)
		}
		for _, e := range entriesIn(t, file) {
			seen[e.RequestID] = true
		}
	}
	for i := last; i > last-len(seen); i-- {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("line %d is missing among the %d most recent", i, len(seen))
		}
	}
}

func TestLogMovedByAnotherProgramIsBegunAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, testOptions(path))
	write(t, l, "before")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(t, l, "after")
	if entries := entriesIn(t, path); len(entries) != 1 || entries[0].RequestID != "after" {
		t.Errorf("got %+v, want what was written after the file was moved", entries)
	}
}

// A crash or a full disk leaves part of a line. It must not spoil the next one.
func TestLineAfterATornOneIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(`{"time":"2026-`), 0o600); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, testOptions(path))
	write(t, l, "r1")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var e Entry
	if len(lines) != 3 || json.Unmarshal([]byte(lines[1]), &e) != nil || e.Stage != StageStarted {
		t.Errorf("got %q, want the part of a line, then whole ones", lines)
	}
}

// failing is an output that fails after some bytes as long as it is told to.
type failing struct {
	bytes.Buffer
	after int // -1 = does not fail
}

var errFull = errors.New("no space left on device")

func (f *failing) Write(p []byte) (int, error) {
	if f.after < 0 {
		return f.Buffer.Write(p)
	}
	n, _ := f.Buffer.Write(p[:min(f.after, len(p))])
	return n, errFull
}

func TestFailedLineIsReportedUntilOneSucceeds(t *testing.T) {
	for _, after := range []int{0, 5} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			out := &failing{after: -1}
			options := testOptions("")
			options.Output = out
			l := openLog(t, options)
			out.after = after
			if err := l.Write(Entry{RequestID: "lost"}); !errors.Is(err, errFull) || !errors.Is(l.Check(), errFull) {
				t.Errorf("Write() = %v, Check() = %v, want the cause of the failure", err, l.Check())
			}
			out.after = -1
			if err := l.Check(); err != nil {
				t.Errorf("Check() = %v once lines can be written again", err)
			}
			write(t, l, "kept")
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			for i, want := range []Entry{{Stage: StageResumed}, {Stage: StageDone, RequestID: "kept"}} {
				var e Entry
				if err := json.Unmarshal([]byte(lines[len(lines)-2+i]), &e); err != nil || e.Stage != want.Stage || e.RequestID != want.RequestID {
					t.Errorf("%q: got %v, want a line that says where lines are missing, then the one that was kept", lines, err)
				}
			}
		})
	}
}

func TestLogThatCannotBeWrittenIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/dev/full": "no space left on device", dir: "neither a regular file nor a device", filepath.Join(file, "audit.log"): "not a directory",
	} {
		l, err := Open(testOptions(path))
		if err == nil {
			_ = l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("Stat() = %v, want the directory untouched", err)
	}
}

func TestLinesOfConcurrentRequestsAreNotMixed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, testOptions(path))
	var all sync.WaitGroup
	const writers, lines = 8, 50
	for range writers {
		all.Go(func() {
			for range lines {
				_ = l.Write(Entry{Reason: strings.Repeat("y", 500)}) // counted below
			}
		})
	}
	all.Wait()
	if n := len(entriesIn(t, path)); n != writers*lines+1 {
		t.Errorf("%d lines, want %d", n, writers*lines+1)
	}
}

func TestNilLogKeepsNothing(t *testing.T) {
	var l *Log
	if l.Write(Entry{}) != nil || l.Check() != nil || l.Required() || l.Collectors() != nil || l.Close() != nil {
		t.Error("a disabled log returns an error")
	}
}

func TestResultOfStatus(t *testing.T) {
	for status, want := range map[int]Result{
		200: ResultAccepted, 201: ResultAccepted, 204: ResultAccepted, 304: ResultAccepted,
		400: ResultRefused, 401: ResultRefused, 409: ResultRefused, 500: ResultFailed, 503: ResultFailed,
	} {
		if got := ResultOf(status); got != want {
			t.Errorf("%d: got %s, want %s", status, got, want)
		}
	}
}
