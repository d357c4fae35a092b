package storetest

import (
	"compress/gzip"
	"io"
	"os"
	"testing"
)

// Backup opens a backup that is kept compressed, such as one that another program has made.
func Backup(t testing.TB, file string) io.Reader {
	t.Helper()
	compressed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = compressed.Close() }) // it was only read
	backup, err := gzip.NewReader(compressed)
	if err != nil {
		t.Fatal(err)
	}
	return backup
}
