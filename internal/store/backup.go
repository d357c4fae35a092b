package store

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Entries of a backup, in this order. Files of the history are between the last two.
const (
	metaEntry     = "meta.json"
	snapshotEntry = "snapshot.db"
	historyPrefix = "history/"
	sumsEntry     = "SHA256SUMS"
)

// backupFormat is the version of the archive's layout.
const backupFormat = 1

// BackupMeta describes a backup.
type BackupMeta struct {
	Format    int       `json:"format"`
	CreatedAt time.Time `json:"created_at"`
	ClusterID string    `json:"cluster_id"`
	// Revision is the last revision the backup contains.
	Revision     int64  `json:"revision"`
	Keys         int    `json:"keys"`
	SizeBytes    int64  `json:"size_bytes"`
	StoreVersion string `json:"store_version"`
}

// History is the history of decisions as backups have it.
type History interface {
	// Backup returns the files of the history up to a revision of the store. They say that it is
	// complete up to restored, the revision at which a restored store begins.
	Backup(ctx context.Context, revision, restored int64) ([]HistoryFile, error)
}

// HistoryFile is a file of the history.
type HistoryFile struct {
	Name string
	Size int64 // in bytes
	// Open opens the content. A file that does not exist any more was too old, and is left out.
	Open func() (io.ReadCloser, error)
}

// Backup writes a consistent snapshot while the store remains in use: a tar archive of meta.json,
// the etcd snapshot, the files of the history, which may be nil, and the SHA-256 sums of all. Secrets
// in it are encrypted as in the store; the key file is not included.
func (s *Store) Backup(ctx context.Context, w io.Writer, history History) error {
	dir := s.options.DataDir // "" = the default directory for temporary files
	if s.lowSpace() {
		dir = ""
	}
	spool, err := os.CreateTemp(dir, "backup-*.db")
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.dead, func() { cancel(context.Cause(s.dead)) })() //nolint:contextcheck // the member's lifetime, not the caller's
	meta, sum, err := s.snapshot(ctx, spool)
	if err != nil {
		if s.dead.Err() != nil {
			err = context.Cause(s.dead) //nolint:contextcheck // the member's lifetime
		}
		return fmt.Errorf("back up: %w", err)
	}
	var files []HistoryFile
	if history != nil {
		if files, err = history.Backup(ctx, meta.Revision, meta.Revision+revisionBump); err != nil {
			return fmt.Errorf("back up: %w", err)
		}
	}
	if err := writeArchive(w, spool, meta, sum, files); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return nil
}

// snapshot streams the database to a file, so that its size and revision are known before the
// archive is started.
func (s *Store) snapshot(ctx context.Context, spool *os.File) (BackupMeta, string, error) {
	meta := BackupMeta{Format: backupFormat, CreatedAt: s.options.Now().UTC(), ClusterID: s.Info().ClusterID}
	hash := sha256.New()
	var err error
	if meta.StoreVersion, err = s.writeDatabase(ctx, io.MultiWriter(spool, hash)); err != nil {
		return meta, "", err
	}
	if meta.SizeBytes, err = spool.Seek(0, io.SeekCurrent); err != nil {
		return meta, "", err
	}
	err = withSnapshots(func(snapshots snapshot.Manager) error {
		status, err := snapshots.Status(spool.Name())
		meta.Revision, meta.Keys = status.Revision, status.TotalKey
		return err
	})
	if err != nil {
		return meta, "", fmt.Errorf("the snapshot cannot be read back: %w", err)
	}
	return meta, hex.EncodeToString(hash.Sum(nil)), nil
}

// withSnapshots calls fn with etcd's snapshot library, which panics on unexpected data. The panic
// becomes an error.
func withSnapshots(fn func(snapshot.Manager) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("etcd's snapshot library gave up: %v", r)
		}
	}()
	logger := zap.New(&slogCore{logger: slog.New(slog.DiscardHandler)},
		zap.WithFatalHook(zapcore.WriteThenPanic), zap.WithPanicHook(zapcore.WriteThenPanic))
	return fn(snapshot.NewV3(logger))
}

func writeArchive(w io.Writer, spool *os.File, meta BackupMeta, sum string, files []HistoryFile) error {
	description, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return err
	}
	description = append(description, '\n')
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	archive := archiveWriter{tar: tar.NewWriter(w), at: meta.CreatedAt}
	archive.sums.add(metaEntry, sumOf(description))
	if err := archive.add(metaEntry, int64(len(description)), bytes.NewReader(description)); err != nil {
		return err
	}
	archive.sums.add(snapshotEntry, sum)
	if err := archive.add(snapshotEntry, meta.SizeBytes, spool); err != nil {
		return err
	}
	for _, file := range files {
		if err := archive.addHistory(file); err != nil {
			return err
		}
	}
	if err := archive.add(sumsEntry, int64(len(archive.sums)), strings.NewReader(string(archive.sums))); err != nil {
		return err
	}
	return archive.tar.Close()
}

// archiveWriter is a backup that is being written.
type archiveWriter struct {
	tar  *tar.Writer
	at   time.Time
	sums sums
}

func (a *archiveWriter) add(name string, size int64, content io.Reader) error {
	header := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: a.at, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(a.tar, content)
	return err
}

// addHistory adds a file of the history, unless it was deleted meanwhile.
func (a *archiveWriter) addHistory(file HistoryFile) error {
	content, err := file.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer content.Close()
	hash := sha256.New()
	name := historyPrefix + file.Name
	if err := a.add(name, file.Size, io.TeeReader(io.LimitReader(content, file.Size), hash)); err != nil {
		return err
	}
	a.sums.add(name, hex.EncodeToString(hash.Sum(nil)))
	return nil
}

// sums is the list of the SHA-256 sums of the entries before it, in the form of sha256sum.
type sums string

func (s *sums) add(name, sum string) { *s += sums(sum + "  " + name + "\n") }

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

var errNotEmpty = errors.New("it holds a store already: restore into an empty directory, or move the old data away first")

// existingStore reports whether a data directory contains a member.
func existingStore(dataDir string) bool {
	_, err := os.Stat(filepath.Join(memberDir(dataDir), "member"))
	return err == nil
}
