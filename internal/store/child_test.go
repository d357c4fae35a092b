package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// Tests that kill a process run the test binary again with this variable: "<command> <data directory>".
const childVariable = "SCHEDULER_STORE_TEST_CHILD"

// childMain runs the command in the variable, and reports whether it was set.
func childMain() bool {
	task, dir, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		return false
	}
	// Disable the watchdog, because the test is about the kill.
	s, err := Open(context.Background(), Options{DataDir: dir, MinFreeBytes: -1, ResumeFreeBytes: -1, RequestTimeout: storetest.Patience, Patience: storetest.Patience})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	switch task {
	case "write":
		childWrite(s)
	case "check":
		childCheck(s)
	}
	_ = s.Close()
	return true
}

// childCheck exits with 3 unless placements 0 to 299 all exist.
func childCheck(s *Store) {
	n := 0
	_, err := s.Load(context.Background(), 0, func(Record) error { n++; return nil })
	if err != nil || n != 300 {
		fmt.Fprintf(os.Stderr, "%d objects, %v\n", n, err)
		os.Exit(3)
	}
}

func childCommand(t *testing.T, task, dir string) *exec.Cmd {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), executable)
	child.Env = append(os.Environ(), childVariable+"="+task+" "+dir)
	return child
}

// childWrite writes from 16 goroutines until the process is killed, and prints each object and its value when the write
// is acknowledged.
func childWrite(s *Store) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	padding := strings.Repeat("x", 8<<10)
	base := time.Now().UnixNano()
	for w := range 16 {
		wg.Go(func() {
			for n := 0; ; n++ {
				number, value := w*1000+n%500, fmt.Sprintf("%d", base+int64(n))
				if _, err := s.Commit(context.Background(), Write{Key: placement(number), Value: []byte(value + " " + padding), Expect: Any}); err != nil {
					return
				}
				mu.Lock()
				fmt.Printf("%d %s\n", number, value)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// acknowledged returns the last acknowledged value of each object. It calls after with the number acknowledged so far.
func acknowledged(t *testing.T, output io.Reader, acked map[int]int64, after func(count int)) int {
	t.Helper()
	count := 0
	for lines := bufio.NewScanner(output); lines.Scan(); count++ {
		after(count)
		number, value, _ := strings.Cut(lines.Text(), " ")
		n, errN := strconv.Atoi(number)
		v, errV := strconv.ParseInt(value, 10, 64)
		if errN != nil || errV != nil {
			// The line that was cut off by the kill.
			continue
		}
		acked[n] = v
	}
	return count
}

// checkAcknowledged checks that every acknowledged value exists, or a later one whose response was lost.
func checkAcknowledged(t *testing.T, s *Store, acked map[int]int64) {
	t.Helper()
	found := map[api.Key]int64{}
	_, err := s.Load(timeout(t), 0, func(r Record) error {
		value, _, _ := strings.Cut(string(r.Value), " ")
		v, err := strconv.ParseInt(value, 10, 64)
		found[r.Key] = v
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for number, value := range acked {
		if found[placement(number)] < value {
			lost++
			t.Errorf("placement %d has %d, but %d was acknowledged", number, found[placement(number)], value)
		}
		if lost > 5 {
			t.Fatal("more writes were lost")
		}
	}
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acked := map[int]int64{}
	total := 0
	random := seeded.Rand(t)
	const rounds = 4
	for range rounds {
		child := childCommand(t, "write", dir)
		output, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		// Kill it at a random time while 16 goroutines write. The test waits for a number of writes, not for a time
		// after which the child may not have started.
		enough := 30 + random.IntN(500)
		total += acknowledged(t, output, acked, func(count int) {
			if count == enough {
				_ = child.Process.Kill() // Wait reports whether it was killed
			}
		})
		var exit *exec.ExitError
		if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("the child was not killed: %v", err)
		}
	}
	if total < 100 {
		t.Fatalf("only %d writes in %d rounds", total, rounds)
	}
	s := open(t, func(o *Options) { o.DataDir = dir })
	checkAcknowledged(t, s, acked)
	t.Logf("%d writes acknowledged in %d rounds", total, rounds)
}
