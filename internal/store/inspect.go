package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Finding is one damage in a data directory or a backup.
type Finding struct {
	// File is the damaged file.
	File string
	// What describes the damage.
	What string
	// Key is the damaged object; zero if the file itself is damaged.
	Key  api.Key
	Part Part
	// Fatal says that a server does not start with it.
	Fatal bool
}

// String returns the finding as one line.
func (f Finding) String() string { return f.File + ": " + f.What }

// database is what an inspection needs to know about a database.
type database struct {
	findings        []Finding
	records         int
	consistentIndex uint64
}

// inspector reads a complete database in etcd's layout.
type inspector struct {
	path string
	database
	compacted int64 // history up to here may be incomplete
	scheduled int64
	last      revision
	suspects  []suspect
	deleted   map[string]bool // keys that were deleted according to the history
	broken    bool            // something fatal was found
}

type revision struct{ main, sub int64 }

// suspect is a record whose value fails its checksum.
type suspect struct {
	kv    *mvccpb.KeyValue
	cause error
}

func (i *inspector) fatal(format string, args ...any) {
	i.broken = true
	i.findings = append(i.findings, Finding{File: i.path, What: fmt.Sprintf(format, args...), Fatal: true})
}

// inspectDatabase reads a database from its first page to its last value. It returns an error if
// the file cannot be read; damage is reported as findings.
func inspectDatabase(path string) (database, error) {
	file, err := os.Open(path)
	if err != nil {
		return database{}, err
	}
	defer file.Close()
	size, err := databaseSize(file)
	if err != nil {
		return database{}, err
	}
	i := &inspector{path: path, deleted: map[string]bool{}}
	// Metadata that says how far the history is complete is stored after the records.
	isMeta := func(bucket string) bool { return bucket == "meta" }
	isOther := func(bucket string) bool { return bucket != "meta" }
	for n, pass := range []func(bucket string, page uint64, e element) error{i.readMeta, i.readRecord} {
		p, err := openPages(file, size, func(page uint64, what string) { i.fatal("page %d: %s", page, what) })
		if errors.Is(err, os.ErrClosed) || isReadError(err) {
			return i.database, err
		}
		if err != nil {
			i.fatal("%v", err)
			return i.database, nil
		}
		if p.oneMeta && n == 0 {
			i.findings = append(i.findings, Finding{File: path, What: "one of its two meta pages is damaged; the other is used"})
		}
		if err := p.buckets([]func(string) bool{isMeta, isOther}[n], pass); err != nil {
			return i.database, err
		}
		if i.broken {
			return i.database, nil
		}
	}
	i.judge(file, size)
	return i.database, nil
}

// isReadError reports whether a file could not be read, as opposed to being invalid.
func isReadError(err error) bool {
	var path *os.PathError
	return errors.As(err, &path)
}

// readMeta reads etcd's metadata.
func (i *inspector) readMeta(_ string, page uint64, e element) error {
	switch name := string(e.key); name {
	case "consistent_index":
		if len(e.value) != 8 {
			i.fatal("page %d: %s is damaged", page, name)
			return nil
		}
		i.consistentIndex = binary.BigEndian.Uint64(e.value)
	case "scheduledCompactRev", "finishedCompactRev":
		r, _, ok := parseRevision(e.value)
		if !ok {
			i.fatal("page %d: %s is damaged", page, name)
			return nil
		}
		i.compacted = max(i.compacted, r.main)
		if name == "scheduledCompactRev" {
			i.scheduled = r.main
		}
	}
	return nil
}

// readRecord reads one version of one key.
func (i *inspector) readRecord(bucket string, page uint64, e element) error {
	if bucket != "key" {
		return nil
	}
	i.records++
	r, tombstone, ok := parseRevision(e.key)
	if !ok {
		i.fatal("page %d: %q is not a revision", page, e.key)
		return nil
	}
	// Where the history is complete, each change follows the previous one.
	if r.main > i.compacted {
		before := i.last
		if before.main <= i.compacted {
			before = revision{max(i.compacted, 1), -1}
		}
		if r != (revision{before.main, before.sub + 1}) && r != (revision{before.main + 1, 0}) || before.sub < 0 && r.main == before.main {
			i.fatal("page %d: revision %d.%d follows on %d.%d", page, r.main, r.sub, before.main, max(before.sub, 0))
			return nil
		}
	}
	i.last = r
	kv, ok := parseKeyValue(e.value)
	live := ok && bytes.HasPrefix(kv.Key, []byte(livePrefix))
	switch {
	case !ok:
		i.fatal("page %d: the record of revision %d%s cannot be read", page, r.main, ofKey(kv))
	case tombstone && len(kv.Key) > 0 && kv.ModRevision == 0:
		if r.main > i.compacted {
			i.deleted[string(kv.Key)] = true
		}
	case len(e.value) == 0 && r.sub == 0 && r.main <= i.scheduled:
		// Where a restored store began. No compaction takes it away: to etcd it is the
		// last version of the key "".
	case tombstone, kv.ModRevision != r.main, kv.CreateRevision <= 0, kv.CreateRevision > kv.ModRevision, kv.Version <= 0, kv.Lease != 0 && !live, len(kv.Key) == 0:
		i.fatal("page %d: the record of revision %d%s is damaged", page, r.main, ofKey(kv))
	case string(kv.Key) == formatKey: // has no envelope, so that every program can read it
	case live: // deleted with its server
	default:
		_, err := openEnvelope(kv)
		if err == nil {
			return nil
		}
		own := &mvccpb.KeyValue{Key: bytes.Clone(kv.Key), ModRevision: kv.ModRevision}
		if !errors.Is(err, errNoEnvelope) {
			own.Value = bytes.Clone(kv.Value)
		}
		i.suspects = append(i.suspects, suspect{own, err})
	}
	return nil
}

func ofKey(kv *mvccpb.KeyValue) string {
	if kv == nil || len(kv.Key) == 0 {
		return ""
	}
	return fmt.Sprintf(" of %q", kv.Key)
}

func isKeys(bucket string) bool { return bucket == "key" }

// judge determines which objects the damaged records belong to.
func (i *inspector) judge(file io.ReaderAt, size int64) {
	if i.compacted > i.last.main {
		i.fatal("its history is compacted up to revision %d, and it ends with %d", i.compacted, i.last.main)
	}
	i.judgeDeletions(file, size)
	if len(i.suspects) == 0 || i.broken {
		return
	}
	// Determine the current versions only if necessary.
	latest := map[string]int64{}
	p, err := openPages(file, size, func(uint64, string) {})
	if err == nil {
		err = p.buckets(isKeys, func(_ string, _ uint64, e element) error {
			r, _, ok := parseRevision(e.key)
			if kv, parsed := parseKeyValue(e.value); ok && parsed {
				latest[string(kv.Key)] = r.main
			}
			return nil
		})
	}
	if err != nil {
		i.fatal("%v", err)
		return
	}
	for _, s := range i.suspects {
		key := string(s.kv.Key)
		if original := originalKey(s.kv); original != "" {
			// The key itself is damaged, so the object cannot be found under its own key.
			if latest[original] < s.kv.ModRevision || latest[key] == s.kv.ModRevision {
				i.fatal("the key of %s, written at revision %d, is damaged: it is %q", describeKey(original), s.kv.ModRevision, key)
			}
			continue
		}
		if latest[key] != s.kv.ModRevision {
			continue // an old version
		}
		object, part, err := parseKey(s.kv.Key)
		f := Finding{File: i.path, Key: object, Part: part}
		switch {
		case err == nil:
			f.What = fmt.Sprintf("the %s of %s, written at revision %d: %v", part, object, s.kv.ModRevision, s.cause)
		case strings.HasPrefix(key, systemPrefix):
			f.What = fmt.Sprintf("%s, written at revision %d: %v; the server writes it again", key, s.kv.ModRevision, s.cause)
		default:
			f.Fatal = true
			f.What = fmt.Sprintf("%q, written at revision %d, is not a key of this store", key, s.kv.ModRevision)
		}
		i.findings = append(i.findings, f)
	}
}

// judgeDeletions checks deletions, which have no checksum: what was deleted must have existed, and
// the two parts of an object must be deleted together.
func (i *inspector) judgeDeletions(file io.ReaderAt, size int64) {
	if len(i.deleted) == 0 || i.broken {
		return
	}
	alive := map[string]bool{}
	for key := range i.deleted {
		alive[key] = false
		if rest, ok := strings.CutPrefix(key, specPrefix); ok {
			alive[statusPrefix+rest] = false
		} else if rest, ok := strings.CutPrefix(key, statusPrefix); ok {
			alive[specPrefix+rest] = false
		}
	}
	changed := map[string]int64{} // revision of the last change
	// Statuses whose specs the last revision deletes without deleting them.
	orphans := map[string]bool{}
	var ended revision
	orphaned := func() {
		for _, key := range slices.Sorted(maps.Keys(orphans)) {
			i.fatal("revision %d deletes the spec of an object, and leaves %s", ended.main, describeKey(key))
		}
		clear(orphans)
	}
	p, err := openPages(file, size, func(uint64, string) {})
	if err == nil {
		err = p.buckets(isKeys, func(_ string, page uint64, e element) error {
			r, tombstone, _ := parseRevision(e.key)
			kv, _ := parseKeyValue(e.value)
			key := string(kv.Key)
			was, known := alive[key]
			if !known {
				return nil
			}
			if r.main > ended.main {
				orphaned()
				ended = r
			}
			alive[key], changed[key] = !tombstone, r.main
			delete(orphans, key)
			if !tombstone || r.main <= i.compacted {
				return nil
			}
			if !was {
				i.fatal("page %d: revision %d deletes %s, which was not there", page, r.main, describeKey(key))
			}
			if rest, ok := strings.CutPrefix(key, specPrefix); ok && alive[statusPrefix+rest] && changed[statusPrefix+rest] < r.main {
				orphans[statusPrefix+rest] = true
			}
			return nil
		})
	}
	if err != nil {
		i.fatal("%v", err)
		return
	}
	orphaned()
}

func describeKey(key string) string {
	object, part, err := parseKey([]byte(key))
	if err != nil {
		return key
	}
	return fmt.Sprintf("the %s of %s", part, object)
}

// originalKey returns the key under which a value was put if a single byte of the key is damaged,
// or "".
func originalKey(kv *mvccpb.KeyValue) string {
	want, covered, ok := splitEnvelope(kv.Value)
	if !ok {
		return ""
	}
	key := append([]byte(nil), kv.Key...)
	for at := range key {
		was := key[at]
		for change := 1; change < 256; change++ {
			key[at] = was ^ byte(change)
			if checksum(key, covered...) == want {
				return string(key)
			}
		}
		key[at] = was
	}
	return ""
}

// parseRevision parses the key of a record: a revision, and whether it is a tombstone.
func parseRevision(key []byte) (r revision, tombstone, ok bool) {
	if len(key) != 17 && (len(key) != 18 || key[17] != 't') || key[8] != '_' {
		return revision{}, false, false
	}
	r = revision{int64(binary.BigEndian.Uint64(key)), int64(binary.BigEndian.Uint64(key[9:]))}
	return r, len(key) == 18, r.main >= 0 && r.sub >= 0
}

// parseKeyValue parses a record without copying it. It is strict: etcd never repeats fields, writes
// them out of order, or writes unknown ones.
func parseKeyValue(b []byte) (*mvccpb.KeyValue, bool) {
	kv := &mvccpb.KeyValue{}
	last := protowire.Number(0)
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || number <= last {
			return kv, false
		}
		b, last = b[n:], number
		switch {
		case kind == protowire.BytesType && (number == 1 || number == 5):
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return kv, false
			}
			if b = b[n:]; number == 1 {
				kv.Key = v
			} else {
				kv.Value = v
			}
		case kind == protowire.VarintType && number != 1 && number != 5 && number <= 6:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return kv, false
			}
			b = b[n:]
			*[...]*int64{2: &kv.CreateRevision, 3: &kv.ModRevision, 4: &kv.Version, 6: &kv.Lease}[number] = int64(v)
		default:
			return kv, false
		}
	}
	return kv, true
}
