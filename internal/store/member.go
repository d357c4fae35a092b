package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// The identity of an embedded member that is alone. The peer address is part of the
// member's id and is never dialled.
const (
	memberName     = "local"
	memberPeerURL  = "unix://local:0"
	initialCluster = memberName + "=" + memberPeerURL
)

// memberDir is where the embedded member keeps its data: beside our lock file,
// so that a restore can put it there in one rename.
func memberDir(dataDir string) string { return filepath.Join(dataDir, "etcd") }

// memberConfig is the configuration of a member that is alone, without any listener.
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
	// A single member elects itself; short ticks let it do so in some 50 ms
	// instead of half a second or more.
	cfg.TickMs, cfg.ElectionMs = 20, 100
	// The log kept in memory is bounded by the sum of the two. The defaults hold
	// close to a gigabyte after a burst of large batches. What has been written since the
	// last snapshot is read into memory by the next start, and stays until the one after.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 200, 20
	// Older segments of the log, 64 MiB each, are of no use to a single member.
	cfg.MaxWalFiles = 2
	cfg.QuotaBackendBytes = o.QuotaBytes
	// We compact ourselves, by age and by number; see maintenance.go.
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, "0"
	// Defragmenting stops the world, so it happens before anybody is served.
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
		cfg.InitialClusterToken = rand.Text() // a new store has an id of its own
		err = refuseAlone(o.DataDir)
	} else {
		others, err = enterCluster(ctx, cfg, o)
	}
	if err != nil {
		return nil, nil, err
	}
	member, err := startEtcd(cfg)
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

// cannotStart says why a member does not start, and what to do about it.
func cannotStart(dir string, err error) error {
	if errors.Is(err, ErrForeign) || errors.Is(err, ErrRemoved) {
		return err // no matter of the disk
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("start the embedded etcd in %s: %w", dir, err)
	}
	return fmt.Errorf("start the embedded etcd in %s: %w: check the disk; if the files are damaged, %s", dir, err, adviceRestore)
}

// A member that is alone elects itself within a few ticks of its clock. One that
// has had no leader for stallTicks times stallTick, while nothing of its log was
// committed or applied, never will: the log is not the one that its database was
// written with. Ticks are counted rather than time, so that a machine that is too
// busy to run this process is not taken for a log that is damaged.
const (
	stallTick  = 50 * time.Millisecond
	stallTicks = 80
)

// awaitReady waits until the member can write, together with others where there are any.
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
			still = 0 // it waits for them as long as it takes
		}
		if still++; still >= stallTicks {
			return fmt.Errorf("%w: its write-ahead log does not belong to its database, or is not whole", ErrDamaged)
		}
	}
}

// startEtcd turns the panics with which etcd meets some damaged files into
// errors.
func startEtcd(cfg *embed.Config) (member *embed.Etcd, err error) {
	defer func() {
		if r := recover(); r != nil {
			member, err = nil, fmt.Errorf("%w: etcd cannot read its files (%v)", ErrDamaged, r)
		}
	}()
	return embed.StartEtcd(cfg)
}
