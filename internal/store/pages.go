package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// pages reads a bbolt database, the file format of etcd's data, without trusting its content. bbolt
// maps the file into memory and follows references in it: a damaged page crashes the process with a
// panic in one of its goroutines or a memory fault. Here, every structure is validated before it is
// used, and read from the file, so that a read error of the disk becomes an error.
type pages struct {
	file     io.ReaderAt
	size     int64
	pageSize int64
	root     uint64   // of the bucket of buckets
	high     uint64   // first unused page
	oneMeta  bool     // one of the two meta pages is damaged; the other one is used
	seen     []bool   // by page
	buffers  [][]byte // by depth
	// damaged is called with what is wrong with a page; the pages below it are skipped.
	damaged func(page uint64, what string)
}

// Layout of bbolt's pages: a header with ID, flags, number of elements and number of overflow
// pages; then the elements; then their keys and values, contiguously.
const (
	pageHeader    = 16
	pageElement   = 16
	branchPage    = 1
	leafPage      = 2
	freelistPage  = 16
	bucketElement = 1
	metaMagic     = 0xED0CDAED
	metaVersion   = 2
	metaBytes     = 64 // without the header
	noFreelist    = ^uint64(0)
	mostDepth     = 64
)

// The page size is that of memory pages on the machine that created the database.
const (
	leastPageSize = 512
	mostPageSize  = 1 << 20
)

var errNoMeta = errors.New("neither of its two meta pages can be read")

// openPages reads the meta pages of a database.
func openPages(file io.ReaderAt, size int64, damaged func(page uint64, what string)) (*pages, error) {
	p := &pages{file: file, size: size, damaged: damaged}
	first, err := p.meta(0)
	if err != nil {
		return nil, err
	}
	var second []byte
	if first != nil {
		p.pageSize = int64(binary.LittleEndian.Uint32(first[8:]))
		second, err = p.meta(p.pageSize)
	} else {
		for p.pageSize = int64(leastPageSize); p.pageSize <= mostPageSize && second == nil && err == nil; {
			if second, err = p.meta(p.pageSize); second == nil {
				p.pageSize *= 2
			}
		}
	}
	if err != nil {
		return nil, err
	}
	newest := first
	if first == nil || second != nil && binary.LittleEndian.Uint64(second[48:]) > binary.LittleEndian.Uint64(first[48:]) {
		newest = second
	}
	if newest == nil {
		return nil, errNoMeta
	}
	p.oneMeta = first == nil || second == nil
	p.root, p.high = binary.LittleEndian.Uint64(newest[16:]), binary.LittleEndian.Uint64(newest[40:])
	if p.high > uint64(size/p.pageSize) {
		return nil, fmt.Errorf("it has %d bytes, at least %d belong to it", size, int64(p.high)*p.pageSize)
	}
	p.seen = make([]bool, p.high)
	if free := binary.LittleEndian.Uint64(newest[32:]); free != noFreelist {
		if page, err := p.read(free, 0); err != nil {
			return nil, err
		} else if page != nil && binary.LittleEndian.Uint16(page[8:]) != freelistPage {
			damaged(free, "it is not the list of free pages")
		}
	}
	return p, nil
}

// meta returns the meta page at an offset, or nil if it is invalid.
func (p *pages) meta(at int64) ([]byte, error) {
	b := make([]byte, pageHeader+metaBytes)
	if n, err := p.file.ReadAt(b, at); n < len(b) {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	b = b[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	pageSize := int64(binary.LittleEndian.Uint32(b[8:]))
	if binary.LittleEndian.Uint32(b) != metaMagic || binary.LittleEndian.Uint32(b[4:]) != metaVersion ||
		binary.LittleEndian.Uint64(b[56:]) != sum.Sum64() ||
		pageSize < leastPageSize || pageSize > mostPageSize || at != 0 && at != pageSize {
		return nil, nil
	}
	return b, nil
}

// read returns a page with its overflow pages, or nil if it is damaged.
func (p *pages) read(id uint64, depth int) ([]byte, error) {
	switch {
	case id < 2 || id >= p.high:
		p.damaged(id, "it is referred to, and not one of the pages in use")
		return nil, nil
	case p.seen[id]:
		p.damaged(id, "it is referred to twice")
		return nil, nil
	case depth >= mostDepth:
		p.damaged(id, "it lies too deep")
		return nil, nil
	}
	p.seen[id] = true
	for len(p.buffers) <= depth {
		p.buffers = append(p.buffers, make([]byte, p.pageSize))
	}
	at := int64(id) * p.pageSize
	page := p.buffers[depth][:p.pageSize]
	if _, err := p.file.ReadAt(page, at); err != nil {
		return nil, p.cannotRead(id, err)
	}
	further := uint64(binary.LittleEndian.Uint32(page[12:]))
	switch {
	case binary.LittleEndian.Uint64(page) != id:
		p.damaged(id, fmt.Sprintf("it says that it is page %d", binary.LittleEndian.Uint64(page)))
		return nil, nil
	case further >= p.high-id:
		p.damaged(id, "its length is wrong")
		return nil, nil
	}
	for n := range further {
		if p.seen[id+1+n] {
			p.damaged(id, "its length is wrong")
			return nil, nil
		}
		p.seen[id+1+n] = true
	}
	if further > 0 {
		p.buffers[depth] = append(page, make([]byte, int64(further)*p.pageSize)...)
		page = p.buffers[depth]
		if _, err := p.file.ReadAt(page[p.pageSize:], at+p.pageSize); err != nil {
			return nil, p.cannotRead(id, err)
		}
	}
	return page, nil
}

func (p *pages) cannotRead(id uint64, err error) error {
	return fmt.Errorf("page %d cannot be read: %w", id, err)
}

// element is a key of a page, with its value or the page below it.
type element struct {
	key, value []byte
	below      uint64
	bucket     bool
}

// elements parses a page, or says what is wrong with it.
func elements(page []byte) (list []element, leaf bool, what string) {
	flags, count := binary.LittleEndian.Uint16(page[8:]), int(binary.LittleEndian.Uint16(page[10:]))
	leaf = flags == leafPage
	if !leaf && flags != branchPage {
		return nil, false, fmt.Sprintf("%#x is not a kind of page that belongs here", flags)
	}
	next := pageHeader + count*pageElement
	if next > len(page) || !leaf && count == 0 {
		return nil, leaf, "its number of keys is wrong"
	}
	list = make([]element, count)
	for i := range list {
		at := pageHeader + i*pageElement
		head := page[at:]
		var e element
		var pos, keyBytes, valueBytes uint64
		if leaf {
			if kind := binary.LittleEndian.Uint32(head); kind > bucketElement {
				return nil, leaf, "the kind of a value is wrong"
			} else {
				e.bucket = kind == bucketElement
			}
			pos, keyBytes, valueBytes = uint64(binary.LittleEndian.Uint32(head[4:])), uint64(binary.LittleEndian.Uint32(head[8:])), uint64(binary.LittleEndian.Uint32(head[12:]))
		} else {
			pos, keyBytes, e.below = uint64(binary.LittleEndian.Uint32(head)), uint64(binary.LittleEndian.Uint32(head[4:])), binary.LittleEndian.Uint64(head[8:])
		}
		end := uint64(next) + keyBytes + valueBytes
		if uint64(at)+pos != uint64(next) || keyBytes == 0 || end > uint64(len(page)) {
			return nil, leaf, "the place or length of a key is wrong"
		}
		e.key, e.value = page[next:uint64(next)+keyBytes], page[uint64(next)+keyBytes:end]
		if i > 0 && bytes.Compare(list[i-1].key, e.key) >= 0 {
			return nil, leaf, "its keys are not in order"
		}
		list[i], next = e, int(end)
	}
	return list, leaf, ""
}

// walk calls fn with the elements of a tree in order, as long as it returns nil. Keys are in [from,
// to); nil means no bound.
func (p *pages) walk(id uint64, depth int, from, to []byte, fn func(page uint64, e element) error) error {
	page, err := p.read(id, depth)
	if page == nil || err != nil {
		return err
	}
	list, leaf, what := elements(page)
	if what == "" && len(list) > 0 && (bytes.Compare(list[0].key, from) < 0 && from != nil || to != nil && bytes.Compare(list[len(list)-1].key, to) >= 0) {
		what = "its keys do not belong here"
	}
	if what != "" {
		p.damaged(id, what)
		return nil
	}
	for i, e := range list {
		if leaf {
			if err := fn(id, e); err != nil {
				return err
			}
			continue
		}
		until := to
		if i+1 < len(list) {
			until = list[i+1].key
		}
		if err := p.walk(e.below, depth+1, e.key, until, fn); err != nil {
			return err
		}
	}
	return nil
}

// buckets calls fn with the contents of the buckets selected by wanted.
func (p *pages) buckets(wanted func(bucket string) bool, fn func(bucket string, page uint64, e element) error) error {
	return p.walk(p.root, 0, nil, nil, func(page uint64, b element) error {
		if !b.bucket || len(b.value) < 16 {
			p.damaged(page, fmt.Sprintf("the bucket %q is damaged", b.key))
			return nil
		}
		name := string(b.key)
		if !wanted(name) {
			return nil
		}
		inBucket := func(page uint64, e element) error {
			if e.bucket {
				p.damaged(page, fmt.Sprintf("there is a bucket in the bucket %q", name))
				return nil
			}
			return fn(name, page, e)
		}
		if root := binary.LittleEndian.Uint64(b.value); root != 0 {
			return p.walk(root, mostDepth/2, nil, nil, inBucket)
		}
		// A small bucket is stored inline in the value.
		what := "it is too short"
		if len(b.value) >= 16+pageHeader {
			var list []element
			var leaf bool
			if list, leaf, what = elements(b.value[16:]); what == "" && leaf {
				for _, e := range list {
					if err := inBucket(page, e); err != nil {
						return err
					}
				}
				return nil
			}
		}
		p.damaged(page, fmt.Sprintf("the bucket %q is damaged: %s", name, what))
		return nil
	})
}

// databaseSize returns the size of an open file.
func databaseSize(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
