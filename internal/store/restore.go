package store

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"

	"github.com/scheduler/terraform-provider-scheduler/internal/wholefile"
)

// errBadBackup is returned for an archive that is not a complete, unmodified backup.
var errBadBackup = errors.New("not a usable backup")

// revisionBump is added to the revision on restore. Clients hold revisions as compare-and-set
// tokens and watch positions, some of them newer than the backup; after the bump none of them can
// be mistaken for a new one.
const revisionBump = 1_000_000_000

// maxSmallEntry limits the size of archive entries that are read into memory.
const maxSmallEntry = 1 << 20

// Restore creates a data directory from a backup. The directory must not contain a store. If the
// archive is damaged, nothing is left behind.
func Restore(ctx context.Context, r io.Reader, dataDir string) (err error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	lock, err := lockDirectory(dataDir)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	if existingStore(dataDir) && !firstStartInterrupted(dataDir) {
		return fmt.Errorf("restore into %s: %w", dataDir, errNotEmpty)
	}
	alone := EtcdMember{Name: memberName, InitialCluster: initialCluster, Token: "restored-" + rand.Text()}
	return alone.restore(ctx, r, dataDir, func(member, history string) error {
		if err := os.RemoveAll(memberDir(dataDir)); err != nil {
			return err
		}
		// What an interrupted first start left must not be taken for the reason to
		// discard what is restored.
		if err := endFirstStart(dataDir); err != nil {
			return err
		}
		if history != "" {
			if err := os.Rename(history, HistoryDir(dataDir)); err != nil {
				return err
			}
		}
		return os.Rename(member, memberDir(dataDir))
	})
}

// HistoryDir returns the directory of the history of decisions in a data directory.
func HistoryDir(dataDir string) string { return filepath.Join(dataDir, "history") }

// EtcdMember is a member of an etcd cluster that goes on with a backup, as the flags of
// etcd describe it.
type EtcdMember struct {
	// Name is the member's own in InitialCluster, which is a list of name=URL.
	Name, InitialCluster string
	// Token keeps members apart that were restored at different times. Empty means
	// one that all members have that are restored from this backup.
	Token string
}

// RestoreEtcd makes the data directory of a member of an external etcd cluster from a
// backup, without the history of decisions, which servers keep in directories of their own. The
// directory must not exist, or be empty. Nothing is left in it when the archive turns out to be damaged.
func RestoreEtcd(ctx context.Context, r io.Reader, dataDir string, m EtcdMember) error {
	if err := m.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	entries, err := os.ReadDir(dataDir)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("restore into %s: %w", dataDir, errNotEmpty)
	}
	return m.restore(ctx, r, dataDir, func(member, _ string) error {
		return os.Rename(filepath.Join(member, "member"), filepath.Join(dataDir, "member"))
	})
}

// check says what is wrong with the description of a member.
func (m EtcdMember) check() error {
	urls, err := types.NewURLsMap(m.InitialCluster)
	if err != nil {
		return fmt.Errorf("the initial cluster %q is not of the form name=https://host:port,name=…: %w", m.InitialCluster, err)
	}
	if urls[m.Name] == nil {
		return fmt.Errorf("the initial cluster %q has no member named %q", m.InitialCluster, m.Name)
	}
	return nil
}

// restore makes the directory of a member beside where it belongs, on the same file
// system, and has it put there. history is the directory of the history of decisions, "" if the backup has none.
func (m EtcdMember) restore(ctx context.Context, r io.Reader, dataDir string, put func(member, history string) error) error {
	work, err := os.MkdirTemp(dataDir, "restore-*")
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer os.RemoveAll(work)
	database := filepath.Join(work, snapshotEntry)
	meta, history, err := extract(&contextReader{ctx, r}, work)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := refuseDamaged(database); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	urls, err := types.NewURLsMap(m.InitialCluster)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	member := filepath.Join(work, "etcd")
	err = withSnapshots(func(snapshots snapshot.Manager) error {
		return snapshots.Restore(snapshot.RestoreConfig{
			SnapshotPath:        database,
			Name:                m.Name,
			OutputDataDir:       member,
			PeerURLs:            urls[m.Name].StringSlice(),
			InitialCluster:      m.InitialCluster,
			InitialClusterToken: cmp.Or(m.Token, fmt.Sprintf("restored-%s-%d", meta.ClusterID, meta.CreatedAt.UnixNano())),
			RevisionBump:        revisionBump,
			MarkCompacted:       true,
		})
	})
	if err != nil {
		return fmt.Errorf("restore: %w: %w", errBadBackup, err)
	}
	if err := put(member, history); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return wholefile.SyncDir(dataDir)
}

// extract writes the snapshot of an archive and the files of the history to a directory, after checking all sums and
// completeness. history is the directory of the latter, "" if there are none.
func extract(r io.Reader, work string) (meta BackupMeta, history string, err error) {
	archive := tar.NewReader(r)
	description, err := smallEntry(archive, metaEntry)
	if err != nil {
		return meta, "", err
	}
	if err := json.Unmarshal(description, &meta); err != nil {
		return meta, "", fmt.Errorf("%w: %s: %w", errBadBackup, metaEntry, err)
	}
	if meta.Format != backupFormat {
		return meta, "", fmt.Errorf("%w: it has format %d, this program reads format %d", errBadBackup, meta.Format, backupFormat)
	}
	var want sums
	want.add(metaEntry, sumOf(description))
	if err := nextEntry(archive, snapshotEntry); err != nil {
		return meta, "", err
	}
	sum, size, err := writeFile(filepath.Join(work, snapshotEntry), archive)
	if err != nil {
		return meta, "", damaged(snapshotEntry, err)
	}
	want.add(snapshotEntry, sum)
	history, err = extractHistory(archive, work, &want)
	if err != nil {
		return meta, "", err
	}
	content, err := readSmall(archive, sumsEntry)
	if err != nil {
		return meta, "", err
	}
	if string(content) != string(want) || size != meta.SizeBytes {
		return meta, "", fmt.Errorf("%w: the SHA-256 sums do not match the content: it was damaged or changed", errBadBackup)
	}
	return meta, history, nil
}

// extractHistory writes the files of the history, and goes to the entry that follows them.
func extractHistory(archive *tar.Reader, work string, want *sums) (dir string, err error) {
	for {
		header, err := archive.Next()
		if err != nil {
			return "", damaged(sumsEntry, err)
		}
		name, of := strings.CutPrefix(header.Name, historyPrefix)
		switch {
		case header.Typeflag != tar.TypeReg || header.Name != sumsEntry && (!of || !filepath.IsLocal(name) || name != filepath.Base(name)):
			return "", fmt.Errorf("%w: found entry %q where %s is expected", errBadBackup, header.Name, sumsEntry)
		case !of:
			return dir, nil
		}
		if dir == "" {
			dir = filepath.Join(work, "history")
			if err := os.Mkdir(dir, 0o700); err != nil {
				return "", err
			}
		}
		sum, _, err := writeFile(filepath.Join(dir, name), archive)
		if err != nil {
			return "", damaged(header.Name, err)
		}
		want.add(header.Name, sum)
	}
}

func nextEntry(archive *tar.Reader, name string) error {
	header, err := archive.Next()
	if err != nil {
		return damaged(name, err)
	}
	if header.Name != name || header.Typeflag != tar.TypeReg {
		return fmt.Errorf("%w: found entry %q where %s is expected", errBadBackup, header.Name, name)
	}
	return nil
}

func smallEntry(archive *tar.Reader, name string) ([]byte, error) {
	if err := nextEntry(archive, name); err != nil {
		return nil, err
	}
	return readSmall(archive, name)
}

// readSmall reads an entry into memory.
func readSmall(archive *tar.Reader, name string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(archive, maxSmallEntry+1))
	if err != nil {
		return nil, damaged(name, err)
	}
	if len(content) > maxSmallEntry {
		return nil, fmt.Errorf("%w: %s is too large", errBadBackup, name)
	}
	return content, nil
}

func damaged(name string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends in or before %s: the file is truncated", errBadBackup, name)
	}
	return fmt.Errorf("%w: %s: %w", errBadBackup, name, err)
}

func writeFile(path string, content io.Reader) (sum string, size int64, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(file, hash), content)
	return hex.EncodeToString(hash.Sum(nil)), size, errors.Join(err, file.Close())
}

// contextReader ends a long read when its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
