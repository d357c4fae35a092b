package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// inspectLog reads the write-ahead log of a member and returns the index of its last entry. etcd
// takes a record with a damaged length for one that was being written when the machine stopped, and
// truncates the log there; and the type of a record is not covered by its checksum. Both are
// detected here.
func inspectLog(member string) (findings []Finding, last uint64, err error) {
	paths, err := filepath.Glob(filepath.Join(member, "wal", "*.wal"))
	if err != nil || len(paths) == 0 {
		return nil, 0, err
	}
	slices.Sort(paths)
	readers := make([]fileutil.FileReader, 0, len(paths))
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		defer file.Close()
		readers = append(readers, fileutil.NewFileReader(file))
	}
	tail := paths[len(paths)-1]
	damaged := func(what string) []Finding {
		return []Finding{{File: filepath.Dir(tail), What: what, Fatal: true}}
	}
	decoder := wal.NewDecoder(readers...)
	var record walpb.Record
	entries := logEntries{}
	for {
		err := decoder.Decode(&record)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			// The end, or a partially written record, unless there is more.
			rest, err := readFrom(tail, decoder.LastOffset())
			if err != nil {
				return nil, 0, err
			}
			if holdsRecords(rest, decoder.LastCRC()) {
				return damaged(fmt.Sprintf("the length of the record at position %d of %s is damaged, and others follow", decoder.LastOffset(), filepath.Base(tail))), 0, nil
			}
			return nil, entries.last, nil
		case isReadError(err):
			return nil, 0, err
		case err != nil:
			return damaged(err.Error()), 0, nil
		}
		if record.GetType() == wal.CrcType {
			if crc := decoder.LastCRC(); crc != 0 && record.Validate(crc) != nil {
				return damaged("the files do not follow one on the other"), 0, nil
			}
			decoder.UpdateCRC(record.GetCrc())
			continue
		}
		if what := entries.add(record.GetType(), record.Data); what != "" {
			return damaged(what), 0, nil
		}
	}
}

// logEntries checks the types of log records.
type logEntries struct {
	metadata   []byte
	last, term uint64
	// begun says that there was an entry. A truncated log may begin with a snapshot record that is
	// older than the entries that follow: those in between were in removed files.
	begun bool
}

// add checks a record and returns what is wrong with it.
func (l *logEntries) add(kind int64, data []byte) string {
	fields, ok := varints(data)
	wrong := fmt.Sprintf("the type of a record behind entry %d is damaged", l.last)
	// The fields of an entry are type, term and index, those of a state term, vote and commit; an
	// entry also has data.
	switch {
	case !ok:
		return wrong
	case kind == wal.MetadataType:
		if l.metadata != nil && !bytes.Equal(l.metadata, data) {
			return wrong
		}
		l.metadata = bytes.Clone(data)
	case kind == wal.EntryType:
		if fields[1] > 2 || fields[3] == 0 || l.begun && (fields[3] > l.last+1 || fields[2] < l.term) || fields[2] > maxTerm {
			return wrong
		}
		l.last, l.term, l.begun = fields[3], fields[2], true
	case kind == wal.StateType:
		if _, hasData := fields[4]; hasData || fields[1] > maxTerm || l.begun && fields[3] > l.last {
			return wrong
		}
	case kind == wal.SnapshotType:
		if fields[2] > maxTerm {
			return wrong
		}
		// What the snapshot contains may have been removed from the log.
		l.last = max(l.last, fields[1])
	default:
		return wrong
	}
	return ""
}

// maxTerm exceeds any realistic number of elections.
const maxTerm = 1 << 40

// varints returns the numeric fields of a message; other fields are present with 0.
func varints(b []byte) (fields map[protowire.Number]uint64, ok bool) {
	fields = map[protowire.Number]uint64{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false
		}
		b = b[n:]
		value := uint64(0)
		if kind == protowire.VarintType {
			value, n = protowire.ConsumeVarint(b)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return nil, false
		}
		fields[number] = value
		b = b[n:]
	}
	return fields, true
}

// readFrom reads a file from an offset to its last nonzero byte; the rest of a log file is
// preallocated.
func readFrom(path string, offset int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	var content []byte
	gap := 0 // zeros not yet appended to content
	chunk := make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(file, chunk)
		if used := withoutZeros(chunk[:n]); used > 0 {
			content = append(append(content, make([]byte, gap)...), chunk[:used]...)
			gap = n - used
		} else {
			gap += n
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return content, nil
		case err != nil:
			return nil, err
		}
	}
}

var zeros [4 << 10]byte

// withoutZeros returns the length of b without trailing zeros. It compares blocks: log files
// consist mostly of zeros, and are read at every start.
func withoutZeros(b []byte) int {
	for len(b) >= len(zeros) && bytes.Equal(b[len(b)-len(zeros):], zeros[:]) {
		b = b[:len(b)-len(zeros)]
	}
	return len(bytes.TrimRight(b, "\x00"))
}

const frameHeader = 8

// holdsRecords reports whether there are further records after the last complete record of a log. A
// partially written record does not count.
func holdsRecords(rest []byte, crc uint32) bool {
	if len(rest) <= frameHeader {
		return false
	}
	// A record of which only the length is damaged.
	if record, ok := recordAt(rest[frameHeader:]); ok && record.GetCrc() == crc32.Update(crc, castagnoli, record.Data) {
		return true
	}
	// Two consecutive records at any offset.
	for at := 0; at+frameHeader < len(rest); at += frameHeader {
		first, n, ok := framed(rest[at:])
		if !ok {
			continue
		}
		if second, _, ok := framed(rest[at+n:]); ok && second.GetCrc() == crc32.Update(first.GetCrc(), castagnoli, second.Data) {
			return true
		}
	}
	return false
}

// framed parses a record preceded by its length.
func framed(b []byte) (record *walpb.Record, n int, ok bool) {
	if len(b) <= frameHeader {
		return nil, 0, false
	}
	length := binary.LittleEndian.Uint64(b)
	bytes, padding := length&(1<<56-1), length>>56&7
	if bytes == 0 || bytes > uint64(len(b)-frameHeader) {
		return nil, 0, false
	}
	record = &walpb.Record{}
	if proto.Unmarshal(b[frameHeader:frameHeader+bytes], record) != nil || record.Type == nil || record.Crc == nil {
		return nil, 0, false
	}
	n = frameHeader + int(bytes+padding)
	return record, min(n, len(b)), true
}

// recordAt parses a record, using only its own fields for its end.
func recordAt(b []byte) (*walpb.Record, bool) {
	rest := b
	for _, number := range []protowire.Number{1, 2, 3} {
		found, kind, n := protowire.ConsumeTag(rest)
		if n < 0 || found != number {
			break // a record may have no data
		}
		m := protowire.ConsumeFieldValue(found, kind, rest[n:])
		if m < 0 {
			return nil, false
		}
		rest = rest[n+m:]
	}
	record := &walpb.Record{}
	err := proto.Unmarshal(b[:len(b)-len(rest)], record)
	return record, err == nil && record.Type != nil && record.Crc != nil
}
