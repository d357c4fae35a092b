package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The head of a bbolt database: two meta pages, each a header of 16 bytes and
// then magic, version, page size, flags, root (16 bytes), free list, the number
// of pages in use, and the transaction that wrote it.
const (
	metaMagic     = 0xED0CDAED
	metaHeader    = 16
	metaPageSize  = metaHeader + 8
	metaPages     = metaHeader + 40
	metaTxn       = metaHeader + 48
	metaBytes     = metaHeader + 64
	leastPageSize = 512
	mostPageSize  = 1 << 20
)

// checkDatabaseFile refuses a database that is shorter than it says itself, such
// as one from an unfinished copy. etcd maps the file into memory, and the
// process would die of a fault at the first page that is not there.
func checkDatabaseFile(dataDir string) error {
	path := filepath.Join(memberDir(dataDir), "member", "snap", "db")
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	need, err := databaseBytes(file)
	if err != nil {
		return fmt.Errorf("read the database %s: %w", path, err)
	}
	if info.Size() < need {
		return fmt.Errorf("%w: the database %s has %d bytes, at least %d belong to it: %s", ErrDamaged, path, info.Size(), need, adviceRestore)
	}
	return nil
}

// databaseBytes is the least size of a database by its newest meta page; 0 when
// it has none that can be read, which etcd itself reports.
func databaseBytes(file io.ReaderAt) (int64, error) {
	meta := func(at int64) ([]byte, error) {
		b := make([]byte, metaBytes)
		n, err := file.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < metaBytes || binary.LittleEndian.Uint32(b[metaHeader:]) != metaMagic {
			return nil, nil
		}
		return b, nil
	}
	first, err := meta(0)
	if err != nil || first == nil {
		return 0, err
	}
	pageSize := int64(binary.LittleEndian.Uint32(first[metaPageSize:]))
	if pageSize < leastPageSize || pageSize > mostPageSize {
		return 0, nil
	}
	newest := first
	second, err := meta(pageSize)
	if err != nil {
		return 0, err
	}
	if second != nil && binary.LittleEndian.Uint64(second[metaTxn:]) > binary.LittleEndian.Uint64(first[metaTxn:]) {
		newest = second
	}
	return int64(binary.LittleEndian.Uint64(newest[metaPages:])) * pageSize, nil
}
