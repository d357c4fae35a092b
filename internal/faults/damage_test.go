//go:build faults

package faults

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// damage changes one file of a data directory.
type damage struct {
	name, file string
	edit       func(r *rand.Rand, content []byte) []byte
	// recovers says that no acknowledged write may be missing.
	recovers bool
}

// end returns where the content of a preallocated file ends.
func end(b []byte) int { return (len(strings.TrimRight(string(b), "\x00")) + 7) &^ 7 }

// flip flips a bit at a position.
func flip(at func(r *rand.Rand, content []byte) int) func(*rand.Rand, []byte) []byte {
	return func(r *rand.Rand, content []byte) []byte {
		content[at(r, content)] ^= 1 << r.IntN(8)
		return content
	}
}

const (
	theLog      = "etcd/member/wal/0000000000000000-0000000000000000.wal"
	theDatabase = "etcd/member/snap/db"
)

// within returns a position in the used pages of a database, after its two meta pages.
func within(r *rand.Rand, content []byte) int {
	page := os.Getpagesize()
	used := 2
	for i := 2; i < len(content)/page; i++ {
		if strings.Trim(string(content[i*page:(i+1)*page]), "\x00") != "" {
			used = i
		}
	}
	for {
		at := 2*page + r.IntN((used-1)*page)
		if content[at] != 0 {
			return at
		}
	}
}

var damages = []damage{
	{"torn tail of the log", theLog, func(_ *rand.Rand, b []byte) []byte {
		// A record of 1200 bytes was being written: its first sector reached the disk, the others did not.
		at := end(b)
		binary.LittleEndian.PutUint64(b[at:], 1200)
		for i := at + 8; i%512 != 0; i++ {
			b[i] = 8
		}
		return b
	}, true},
	{"flipped bit in the middle of the log", theLog, flip(func(r *rand.Rand, b []byte) int { return end(b)/4 + r.IntN(end(b)/2) }), false},
	{"flipped bit in the head of the log", theLog, flip(func(r *rand.Rand, _ []byte) int { return 8 + r.IntN(64) }), false},
	{"truncated log", theLog, func(r *rand.Rand, b []byte) []byte { return b[:end(b)/2+r.IntN(100)] }, false},
	{"empty log", theLog, func(*rand.Rand, []byte) []byte { return nil }, false},
	{"both meta pages of the database", theDatabase, func(_ *rand.Rand, b []byte) []byte {
		b[24] ^= 1
		b[os.Getpagesize()+24] ^= 1
		return b
	}, false},
	{"truncated database", theDatabase, func(_ *rand.Rand, b []byte) []byte { return b[:3*os.Getpagesize()] }, false},
	{"flipped bit in a page of the database", theDatabase, flip(within), false},
	{"flipped bit in a value of the database", theDatabase, flip(func(r *rand.Rand, b []byte) int {
		places := values(b, "/v1/spec/placement/")
		return places[r.IntN(len(places))] + r.IntN(24)
	}), false},
	{"overwritten page of the database", theDatabase, func(r *rand.Rand, b []byte) []byte {
		page := os.Getpagesize()
		at := within(r, b) / page * page
		for i := range page {
			b[at+i] = byte(r.IntN(256))
		}
		return b
	}, false},
}

// values returns the positions in a database where the values of some keys start, after the field's tag and length.
func values(b []byte, keys string) []int {
	var places []int
	for _, key := range indexAll(b, keys) {
		record := b[key:min(key+100, len(b))]
		for i := range record[:max(len(record)-3, 0)] {
			for _, at := range []int{i + 2, i + 3} {
				if record[i] == 0x2a && (record[at] == 0x84 || record[at] == 0x87) { // the magic bytes of envelopes
					places = append(places, key+at)
				}
			}
		}
	}
	return places
}

func indexAll(b []byte, what string) []int {
	var places []int
	for at, rest := 0, string(b); ; {
		i := strings.Index(rest, what)
		if i < 0 {
			return places
		}
		places = append(places, at+i)
		at, rest = at+i+1, rest[i+1:]
	}
}

// TestFaultDamage flips bits in the files of a store, truncates and overwrites them. The next start either has
// everything, or says which object is damaged, or fails with a message that says what to do. It never serves wrong
// data, and never crashes.
func TestFaultDamage(t *testing.T) {
	f := begin(t, 3)
	dir := dataDir(t)
	w := newWorld(t, f, embedded(dir)...)
	w.startWriting()
	w.awaitWrites(300)
	w.stopWriting()
	w.judgeQuickly()
	w.p().kill()
	killed := copyDir(t, dir) // much of its data is only in the log
	w.start().stop()
	stopped := copyDir(t, dir) // everything is also in the database
	outcomes := map[string]int{}
	for round := range rounds(1, 12) {
		for _, d := range damages {
			from := stopped
			if d.file == theLog {
				from = killed
			}
			w.damaged(d, from, round, outcomes)
		}
	}
	t.Logf("%v", outcomes)
	if outcomes["refused"] == 0 {
		t.Error("no start was rejected: the damage had no effect")
	}
	w.start()
	w.judge()
}

// damaged starts a server on a copy of the directory with one damage.
func (w *world) damaged(d damage, from string, round int, outcomes map[string]int) {
	t := w.t
	t.Helper()
	dir := copyDir(t, from)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, d.file)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	after := d.edit(w.random, append([]byte{}, before...))
	if string(before) == string(after) {
		t.Fatalf("%s: the file was not changed", d.name)
	}
	if err := os.WriteFile(path, after, 0o600); err != nil {
		t.Fatal(err)
	}
	w.fault.happened()
	complain := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s (round %d): %s", d.name, round, fmt.Sprintf(format, args...))
	}
	checked, checkCode, err := command("check", dir)
	if err != nil || strings.Contains(checked, "goroutine ") {
		complain("check: %v\n%.2000s", err, checked)
	}
	p := launch(t, nil, serverBinary, embedded(dir)...)
	defer p.kill()
	select {
	case <-p.ready:
	case <-time.After(eventually.Limit):
		complain("the start neither works nor ends:\n%s", p.stderr.Tail())
		return
	}
	said := p.stderr.String()
	if strings.Contains(said, "goroutine ") {
		complain("a Go panic:\n%.2000s", said)
	}
	if p.url == "" {
		outcomes["refused"]++
		if checkCode == 0 {
			complain("refused, and check finds nothing: %.300s", checked)
		}
		if d.recovers || !strings.Contains(said, "restore") {
			complain("refused with:\n%s", said)
		}
		return
	}
	p.awaitReady()
	there, err := objects(p)
	if err != nil {
		outcomes["reads fail"]++
		complain("reads fail: %v", err)
		return
	}
	ready := p.readiness()
	described, err := p.ask("GET", "/v1/server", "")
	if err != nil {
		complain("%v", err)
	}
	wrong := 0
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for key, e := range w.ledger.entries {
		if e.object == nil || e.last.gone {
			continue
		}
		object := there[key]
		if object != nil && (numberOf(object) == e.last.number && reflect.DeepEqual(object.SpecPart(), e.object.SpecPart())) {
			continue
		}
		wrong++
		if object != nil {
			complain("%s is served as\n%.300s\nand was\n%.300s", key, fmt.Sprintf("%+v", object), fmt.Sprintf("%+v", e.object))
		}
		if !p.stderr.Contains(key.Name) || !strings.Contains(described.body, key.Name) || !strings.Contains(ready.body, "damaged") {
			complain("%s is missing, and that is not said (/readyz: %q)", key, ready.body)
		}
	}
	switch {
	case wrong > 0 && d.recovers:
		complain("%d objects are not as they were acknowledged", wrong)
	case wrong > 0:
		outcomes["named"]++
		if checkCode == 0 {
			complain("%d objects are damaged, and check finds nothing: %.300s", wrong, checked)
		}
	default:
		outcomes["recovered"]++
	}
}
