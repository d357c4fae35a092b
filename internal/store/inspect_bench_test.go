package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkInspectMember reads the files of a store of about 100 MiB, as every start does.
func BenchmarkInspectMember(b *testing.B) {
	dir := b.TempDir()
	s := open(b, func(o *Options) { o.DataDir = dir })
	const objects, batch = 100_000, 100
	text := bytes.Repeat([]byte("x"), 900)
	for n := 0; n < objects; n += batch {
		writes := make([]Write, batch)
		for i := range writes {
			writes[i] = Write{Key: placement(n + i), Value: fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, n+i, text), Expect: Any}
		}
		if _, err := s.Commit(timeout(b), writes...); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(memberDir(dir), "member", "snap", "db"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if findings, _, _, err := inspectMember(memberDir(dir)); err != nil || len(findings) > 0 {
			b.Fatal(findings, err)
		}
	}
}
