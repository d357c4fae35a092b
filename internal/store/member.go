package store

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// The identity of the embedded member. The peer address is part of the member's
// id and is never dialled.
const (
	memberName     = "local"
	memberPeerURL  = "unix://local:0"
	initialCluster = memberName + "=" + memberPeerURL
)

// memberDir is where the embedded member keeps its data: beside our lock file,
// so that a restore can put it there in one rename.
func memberDir(dataDir string) string { return filepath.Join(dataDir, "etcd") }

// memberConfig is the configuration of a member without any listener.
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
	// close to a gigabyte after a burst of large batches.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 1000, 100
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
	cfg, err := memberConfig(o, onFatal)
	if err != nil {
		return nil, nil, err
	}
	member, err := startEtcd(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("start the embedded etcd in %s: %w", cfg.Dir, err)
	}
	select {
	case <-member.Server.ReadyNotify():
	case <-member.Server.StopNotify():
		member.Close()
		return nil, nil, fmt.Errorf("start the embedded etcd in %s: it stopped before it was ready", cfg.Dir)
	case <-ctx.Done():
		member.Close()
		return nil, nil, fmt.Errorf("start the embedded etcd in %s: %w", cfg.Dir, ctx.Err())
	}
	return member, v3client.New(member.Server), nil
}

// startEtcd turns the panics with which etcd meets some damaged files into
// errors.
func startEtcd(cfg *embed.Config) (member *embed.Etcd, err error) {
	defer func() {
		if r := recover(); r != nil {
			member, err = nil, fmt.Errorf("%w: etcd cannot read its files (%v): restore a backup", ErrDamaged, r)
		}
	}()
	return embed.StartEtcd(cfg)
}
