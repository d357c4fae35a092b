package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// embedded is the etcd member in this process, and the data directory that it owns.
type embedded struct {
	options *Options
	lock    *directoryLock
	disk    *diskWatch
	first   bool // the data directory was empty before
	member  *embed.Etcd
	files   fileGuard
	client  *clientv3.Client
}

// open locks the data directory and starts the member. It sets the default of QuotaBytes. After an
// error, too, the member must be closed.
func (e *embedded) open(ctx context.Context, fatal func(error)) error {
	dir := e.options.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the data directory: %w", err)
	}
	var err error
	if e.lock, err = lockDirectory(dir); err != nil {
		return err
	}
	if e.options.QuotaBytes == 0 {
		if e.options.QuotaBytes, err = defaultQuota(dir); err != nil {
			return err
		}
	}
	e.disk = newDiskWatch(*e.options)
	if err := checkStartSpace(dir); err != nil {
		return err
	}
	if e.first, err = beginFirstStart(dir, e.options.alone()); err != nil {
		return err
	}
	if !e.first {
		e.options.Doing("checking the files of the store")
		if err := preflight(dir); err != nil {
			return err
		}
	}
	e.options.Doing("reading the database and the write-ahead log of the store")
	if e.member, e.client, err = startMember(ctx, *e.options, fatal); err != nil {
		return err
	}
	e.disk.settleWith(e.commit)
	e.files, err = newFileGuard(dir)
	return err
}

// commit makes etcd write its database to the disk.
func (e *embedded) commit() { e.member.Server.Backend().ForceCommit() }

// awaitStop reports why the member has stopped by itself, unless ctx is done first.
func (e *embedded) awaitStop(ctx context.Context, fatal func(error)) {
	select {
	case <-ctx.Done():
	case <-e.member.Server.StopNotify():
		fatal(whyStopped(ctx, e.member, *e.options))
	}
}

// close stops the member, which writes out its data, and releases the data directory.
func (e *embedded) close() error {
	var errs []error
	if e.member != nil {
		errs = append(errs, closeClient(e.client))
		e.disk.settleWith(nil)
		e.member.Close()
	}
	if e.lock != nil {
		errs = append(errs, e.lock.release())
	}
	return errors.Join(errs...)
}

// closeClient closes a client. One of an embedded member has no connection, so it returns the error
// of its own context.
func closeClient(client *clientv3.Client) error {
	if err := client.Close(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
