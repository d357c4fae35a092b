package history

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// What TestKilledWhileRecording does to the leader, and the least number of moves meanwhile: -kills 50 -pauses 20 -moves 100000
// is the test of a release.
var (
	kills  = flag.Int("kills", 3, "how often the leader is killed while it records")
	pauses = flag.Int("pauses", 1, "how often the leader is paused while it records, until the other one leads")
	moves  = flag.Int("moves", 0, "how many decisions move at least")
)

// Tests that kill a process run the test binary again with this variable, the address of an etcd.
const childVariable = "SCHEDULER_HISTORY_TEST_CHILD"

const (
	childObjects = 200
	childMoves   = 50 // in one turn
	childTurns   = 40 // of one term
)

// childMain leads whenever it can, and moves objects: the status of each is how often it was moved, and so is its
// record. It reports whether it is a child.
func childMain() bool {
	address := os.Getenv(childVariable)
	if address == "" {
		return false
	}
	if err := childRun(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func childRun(address string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Endpoints: []string{"http://" + address}, HistoryBytes: 1 << 28, LeaseTTL: time.Second})
	if err != nil {
		return err
	}
	l := New(Options{Store: s, Retention: 90 * day, Size: 1 << 28})
	l.log.most, l.inputs.most, l.sealBytes = 20, 20, 100<<10
	for {
		term, err := s.Campaign(ctx)
		if err != nil {
			return err
		}
		fmt.Println("leads")
		for turns := 0; ; turns++ {
			err := childTurn(term.Context(), s, l)
			if term.Context().Err() != nil {
				break
			}
			if err != nil && !errors.Is(err, store.ErrUncertain) && !errors.Is(err, store.ErrUnavailable) {
				return err
			}
			if turns == childTurns {
				term.Resign()
				fmt.Println("resigned")
				break
			}
			if err != nil {
				continue // what was not answered may not have moved
			}
			fmt.Println("moved")
		}
	}
}

// childTurn moves some objects, seals, and records a pass.
func childTurn(ctx context.Context, s *store.Store, l *Log) error {
	last, err := l.Recorded(ctx)
	if err != nil {
		return err
	}
	err = l.Record(ctx, Pass{Revision: last + 1, Time: time.Now(), Changed: func(yield func(store.Record) bool) {
		yield(store.Record{Key: object(0), Value: fmt.Append(nil, last), ModRevision: last + 1, CreateRevision: 1})
	}})
	if err != nil {
		return err
	}
	var writes []store.StatusWrite
	for _, n := range rand.Perm(childObjects)[:childMoves] {
		spec, status, err := s.Read(ctx, object(n))
		if err != nil {
			return err
		}
		moved := 0
		if status != nil {
			if moved, err = strconv.Atoi(string(status.Value)); err != nil {
				return err
			}
		}
		moved++
		writes = append(writes, store.StatusWrite{
			Key: object(n), Value: strconv.AppendInt(nil, int64(moved), 10), SpecRevision: spec.ModRevision,
			History: fmt.Appendf(nil, `{"time":%q,"object":{"kind":"placement","namespace":%q,"name":%q},"n":%d}`, time.Now().Format(time.RFC3339Nano), object(n).Namespace, object(n).Name, moved),
		})
	}
	if _, err := s.Derive(ctx, writes); err != nil {
		return err
	}
	l.tend(ctx)
	return nil
}

// child is a process that moves objects.
type child struct {
	*exec.Cmd

	lines chan string
}

func startChild(t *testing.T, address string) *child {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{exec.CommandContext(t.Context(), executable), make(chan string, 1000)}
	c.Env = append(os.Environ(), childVariable+"="+address)
	c.Stderr = os.Stderr
	output, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
	}()
	return c
}

// pair is two children, one of which leads, and what they have done.
type pair struct {
	t              *testing.T
	leader, other  *child // as far as is known
	turns          int
	terms, resigns int
}

// next waits until one of the children has done something, and reports whether a term began.
func (p *pair) next() (began bool) {
	var line string
	select {
	case line = <-p.leader.lines:
	case line = <-p.other.lines:
		p.leader, p.other = p.other, p.leader
	}
	switch line {
	case "leads":
		p.terms++
		return true
	case "moved":
		p.turns++
	case "resigned":
		p.resigns++
	default:
		p.t.Fatal("a child has ended")
	}
	return false
}

// signal sends a signal to a child.
func (p *pair) signal(c *child, s os.Signal) {
	if err := c.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// pause stops the leader in the middle of what it does until the other one leads, and lets it go on.
func (p *pair) pause() {
	paused := p.leader
	p.signal(paused, syscall.SIGSTOP)
	for began := false; !began || p.leader == paused; { // it may have said more before it was stopped
		began = p.next()
	}
	p.signal(paused, syscall.SIGCONT)
}

// kill ends a child.
func (p *pair) kill(c *child) {
	_ = c.Process.Kill() // Wait says whether it was
	for range c.lines {
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		p.t.Fatalf("the child was not killed: %v", err)
	}
}

// TestKilledWhileRecording kills and pauses the leader of two servers while it moves objects, seals and records, again and
// again, and expects exactly one record for each move, in order. In between, each leader hands over after some time.
func TestKilledWhileRecording(t *testing.T) {
	address, _ := storetest.Etcd(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*eventually.Limit+time.Duration(*moves)*10*time.Millisecond)
	t.Cleanup(cancel)
	s, err := store.Open(ctx, store.Options{Endpoints: []string{"http://" + address}, HistoryBytes: 1 << 28})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for n := range childObjects {
		if _, err := s.Commit(ctx, store.Write{Key: object(n), Value: []byte("spec")}); err != nil {
			t.Fatal(err)
		}
	}
	p := &pair{t: t, leader: startChild(t, address), other: startChild(t, address)}
	faults := make([]func(), 0, *kills+*pauses)
	for range *kills {
		faults = append(faults, func() { p.kill(p.leader); p.leader = startChild(t, address) })
	}
	for range *pauses {
		faults = append(faults, p.pause)
	}
	rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for n, fault := range faults {
		least := *moves / childMoves * n / len(faults)
		for enough := max(p.turns, least) + 1 + rand.IntN(60); p.turns < enough; {
			p.next()
		}
		fault()
	}
	for p.turns*childMoves < *moves {
		p.next()
	}
	p.kill(p.leader)
	p.kill(p.other)
	checkMoves(ctx, t, s)
	t.Logf("%d kills, %d pauses, %d terms, %d of them handed over", *kills, *pauses, p.terms, p.resigns)
}

// checkMoves checks that each move of each object is recorded once, in order.
func checkMoves(ctx context.Context, t *testing.T, s *store.Store) {
	l := New(Options{Store: s, Retention: 90 * day, Size: 1 << 28})
	moved := map[api.Key]int{}
	query, records, sealed := Query{Limit: 1000}, 0, int64(0)
	for {
		page, err := l.Read(ctx, query)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if item.Gap != nil {
				t.Fatalf("a gap: %s", item.Gap.Reason)
			}
			tags, err := decodeTags(item.Record)
			if err != nil {
				t.Fatal(err)
			}
			key := api.Key{Kind: tags.Object.Kind, Namespace: tags.Object.Namespace, Name: tags.Object.Name}
			if moved[key]++; !strings.HasSuffix(string(item.Record), fmt.Sprintf(`"n":%d}`, moved[key])) {
				t.Fatalf("record %d of %s is %s", moved[key], key, item.Record)
			}
			records++
		}
		if page.Next == (Cursor{}) {
			break
		}
		query.After = page.Next
	}
	for n := range childObjects {
		_, status, err := s.Read(ctx, object(n))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(moved[object(n)]); status != nil && string(status.Value) != want || status == nil && want != "0" {
			t.Fatalf("%s was moved %v times, %s moves are recorded", object(n), status, want)
		}
	}
	if h, _, err := l.readHead(ctx, 0); err == nil {
		sealed = h.Log.Records
	}
	if records < *moves || records == 0 || sealed == 0 {
		t.Fatalf("%d records of at least %d moves, %d of them sealed", records, *moves, sealed)
	}
	t.Logf("%d records, %d of them sealed", records, sealed)
}
