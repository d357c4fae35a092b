package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// Identity of a single embedded member. The peer address is part of the member's ID and is never
// dialed.
const (
	memberName     = "local"
	memberPeerURL  = "unix://local:0"
	initialCluster = memberName + "=" + memberPeerURL
)

// memberDir returns the directory of the embedded member's data: next to the lock file, so that a
// restore can put it there with one rename.
func memberDir(dataDir string) string { return filepath.Join(dataDir, "etcd") }

// memberConfig returns the configuration of a single member, without listeners.
func memberConfig(o Options, onFatal func(error)) (*embed.Config, error) {
	peer, err := url.Parse(memberPeerURL)
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name = memberName
	cfg.Dir = memberDir(o.DataDir)
	cfg.ListenPeerUrls, cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil, nil
	cfg.AdvertisePeerUrls = []url.URL{*peer}
	cfg.InitialCluster = initialCluster
	cfg.EnableGRPCGateway = false
	// A single member elects itself; short ticks let it do so in about 50 ms instead of half a
	// second or more.
	cfg.TickMs, cfg.ElectionMs = 20, 100
	// The log kept in memory is limited by the sum of the two. With the defaults, it holds close to
	// a gigabyte after a burst of large batches. Entries since the last snapshot are read into
	// memory by the next start, and stay until the following one.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 200, 20
	// Older log segments, 64 MiB each, are useless to a single member.
	cfg.MaxWalFiles = 2
	cfg.QuotaBackendBytes = o.QuotaBytes
	// The store compacts by itself, by age and by number; see maintenance.go.
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, "0"
	// Defragmentation blocks everything, so it happens before requests are served.
	cfg.BootstrapDefragThresholdMegabytes = 256
	cfg.UnsafeNoFsync = o.NoFsync
	cfg.LogLevel = "warn"
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newZapLogger(o.Logger, onFatal))
	return cfg, nil
}

// startMember starts the embedded member and waits until it can write.
func startMember(ctx context.Context, o Options, onFatal func(error)) (*embed.Etcd, *clientv3.Client, error) {
	var started atomic.Bool
	cfg, err := memberConfig(o, func(err error) {
		if !started.Load() {
			err = cannotStart(memberDir(o.DataDir), err)
		}
		onFatal(err)
	})
	if err != nil {
		return nil, nil, err
	}
	var others *neighbours
	if o.Cluster == nil {
		cfg.InitialClusterToken = rand.Text() // a new store gets its own ID
		err = refuseAlone(o.DataDir)
	} else {
		others, err = enterCluster(ctx, cfg, o)
	}
	if err != nil {
		return nil, nil, err
	}
	member, err := startEtcd(cfg)
	if err != nil && o.Cluster != nil && strings.Contains(err.Error(), inconsistent) {
		return nil, nil, fmt.Errorf("%w: %s: %w: %s", ErrDamaged, cfg.Dir, err, o.Cluster.adviceReplaceMember())
	}
	if err != nil {
		return nil, nil, cannotStart(cfg.Dir, err)
	}
	if others == nil {
		err = awaitReady(ctx, member, false)
	} else if err = endFirstStart(o.DataDir); err == nil {
		err = others.takePart(ctx, member, o)
	}
	if err != nil {
		member.Close()
		return nil, nil, cannotStart(cfg.Dir, err)
	}
	started.Store(true)
	return member, v3client.New(member.Server), nil
}

// inconsistent is in etcd's error if a member does not have what the others have.
const inconsistent = "data inconsistency with peers"

// cannotStart says why a member does not start, and what to do about it.
func cannotStart(dir string, err error) error {
	if errors.Is(err, errForeign) || errors.Is(err, errRemoved) {
		return err // not related to the disk
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("start the embedded etcd in %s: %w", dir, err)
	}
	return fmt.Errorf("start the embedded etcd in %s: %w: check the disk; if the files are damaged, %s", dir, err, adviceRestore)
}

// A single member elects itself within a few ticks. One that has had no leader for stallTicks times
// stallTick, while nothing of its log was committed or applied, never will: the log does not belong
// to its database. Ticks are counted instead of time, so that a machine that is too busy to run
// this process is not mistaken for a damaged log.
const (
	stallTick  = 50 * time.Millisecond
	stallTicks = 80
)

// awaitReady waits until the member can write, with a quorum of others if there are any.
func awaitReady(ctx context.Context, member *embed.Etcd, others bool) error {
	type progress struct{ leader, term, committed, applied uint64 }
	look := func() progress {
		s := member.Server
		return progress{uint64(s.Leader()), s.Term(), s.CommittedIndex(), s.AppliedIndex()}
	}
	ticker := time.NewTicker(stallTick)
	defer ticker.Stop()
	for last, still := look(), 0; ; {
		select {
		case <-member.Server.ReadyNotify():
			return nil
		case <-member.Server.StopNotify():
			return errors.New("it stopped before it was ready")
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		now := look()
		if now != last {
			last, still = now, 0
		}
		if others && !isOnly(member.Server) {
			still = 0 // it waits for the others as long as it takes
		}
		if still++; still >= stallTicks {
			return fmt.Errorf("%w: its write-ahead log does not belong to its database, or is not whole", ErrDamaged)
		}
	}
}

// startEtcd converts etcd's panics on damaged files to errors.
func startEtcd(cfg *embed.Config) (member *embed.Etcd, err error) {
	defer func() {
		if r := recover(); r != nil {
			member, err = nil, fmt.Errorf("%w: etcd cannot read its files (%v)", ErrDamaged, r)
		}
	}()
	return embed.StartEtcd(cfg)
}
