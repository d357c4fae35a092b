package store

import (
	"context"
	"crypto/sha256"
	"io"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// writeDatabase writes the database of etcd as it is at one moment, followed by its SHA-256 sum, which etcd's tools
// check, and returns the version of etcd's storage. The database is complete only if it returns no error. It does not
// write to w once it has returned.
func (s *Store) writeDatabase(ctx context.Context, w io.Writer) (version string, err error) {
	if s.member == nil {
		return s.receiveDatabase(ctx, w)
	}
	// Not through the client: what it starts in an embedded member goes on after a request has ended, and panics
	// if the member is closed then. A member that has died may hold its locks forever; then the reader is left behind.
	pipe, end := io.Pipe()
	var copied string // written before the end of the pipe
	s.readers.Go(func() {
		err := recovery.Confine("", func() (err error) {
			copied, err = copyDatabase(s.member.Server, end)
			return err
		})
		_ = end.CloseWithError(err) // returns no error
	})
	stop := func() { _ = pipe.Close() } // returns no error
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	defer context.AfterFunc(s.ctx, stop)() //nolint:contextcheck // a backup ends with the store too
	_, err = io.Copy(w, pipe)
	switch {
	case err == nil:
		return copied, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case s.ctx.Err() != nil:
		return "", errClosed
	}
	return "", err
}

// receiveDatabase has an etcd cluster send its database.
func (s *Store) receiveDatabase(ctx context.Context, w io.Writer) (version string, err error) {
	resp, err := s.client.SnapshotWithVersion(ctx)
	if err != nil {
		return "", classify(err, false)
	}
	defer resp.Snapshot.Close()
	_, err = io.Copy(w, resp.Snapshot)
	return resp.Version, err
}

func copyDatabase(server *etcdserver.EtcdServer, w io.Writer) (version string, err error) {
	if v := schema.ReadStorageVersion(server.Backend().ReadTx()); v != nil {
		version = v.String()
	}
	database := server.Backend().Snapshot()
	defer database.Close()
	sum := sha256.New()
	if _, err := database.WriteTo(io.MultiWriter(w, sum)); err != nil {
		return "", err
	}
	_, err = w.Write(sum.Sum(nil))
	return version, err
}
