package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/features"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// enterCluster turns the configuration of a single member into that of a cluster member, after
// checking with the others that it may be one.
func enterCluster(ctx context.Context, cfg *embed.Config, o Options) (*neighbours, error) {
	c := o.Cluster
	noted, err := notedMembers(o.DataDir)
	if err != nil {
		return nil, err
	}
	others, err := newNeighbours(c, noted)
	if err != nil {
		return nil, err
	}
	own, err := url.Parse(c.own().URL)
	if err != nil {
		return nil, err
	}
	listen, err := c.listenURL(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Name, cfg.InitialCluster, cfg.InitialClusterToken = c.Name, peerList(c.Peers), clusterToken
	cfg.AdvertisePeerUrls, cfg.ListenPeerUrls, cfg.PeerTLSInfo = []url.URL{*own}, []url.URL{listen}, c.tls()
	// Nobody connects to it: publishing an address shows that the member has been ready.
	cfg.AdvertiseClientUrls = []url.URL{*own}
	// Network latency is higher among several members, and disks stall.
	cfg.TickMs, cfg.ElectionMs = 100, 1000
	// A member that was away briefly catches up from the log rather than from a copy of the
	// database.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = 1000, 1000
	// Before it takes part, a member compares what it has with what the others have.
	gates, ok := cfg.ServerFeatureGate.(interface{ Set(gates string) error })
	if !ok {
		return nil, errors.New("this etcd has no feature gates")
	}
	if err := gates.Set(string(features.InitialCorruptCheck) + "=true"); err != nil {
		return nil, err
	}

	if checkLog(o.DataDir) == nil {
		cluster, id, err := logIdentity(o.DataDir)
		if err != nil {
			return nil, cannotStart(cfg.Dir, err)
		}
		views, _ := others.ask(ctx)
		return others, c.refuse(o.DataDir, cluster, id, views)
	}
	found, err := others.await(ctx, o)
	if err != nil {
		return nil, err
	}
	cfg.InitialCluster, cfg.ClusterState = found.initial, found.state
	return others, nil
}

// clusterToken must be the same for all initial members: the cluster ID is derived from it and from
// their addresses.
const clusterToken = "scheduler-server"

// await determines how an empty data directory becomes a member. To join a cluster, it waits for a
// member that responds.
func (n *neighbours) await(ctx context.Context, o Options) (founding, error) {
	for {
		views, silent := n.ask(ctx)
		found, ok, err := n.cluster.join(views)
		switch {
		case err != nil || ok:
			return found, err
		case !n.cluster.Join:
			if count := len(n.cluster.Peers); count%2 == 0 {
				o.Logger.Warn("the cluster has an even number of members: it tolerates no more failures than with one member less", "members", count)
			}
			return founding{peerList(n.cluster.Peers), embed.ClusterStateFlagNew}, nil
		}
		o.Doing("waiting for a member of the cluster to join" + because(silent))
		if !backoff.Wait(ctx, time.Second) {
			return found, fmt.Errorf("join the cluster%s: %w", because(silent), ctx.Err())
		}
	}
}

func because(silent []error) string {
	if len(silent) == 0 {
		return ""
	}
	return ": " + strings.ReplaceAll(errors.Join(silent...).Error(), "\n", "; ")
}

// takePart waits until the member takes part in the cluster as a voter.
func (n *neighbours) takePart(ctx context.Context, member *embed.Etcd, o Options) (err error) {
	ctx, refuse := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	asking.Go(func() { refuse(n.watchOver(ctx, member, o)) })
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		refuse(nil)
		asking.Wait()
	}()
	o.Doing("waiting for the other members of the cluster")
	if err := awaitReady(ctx, member, true); err != nil {
		select {
		case <-member.Server.StopNotify():
			return whyStopped(ctx, member, o)
		default:
			return err
		}
	}
	if err := tellAddress(ctx, member, o.Cluster.own().URL); err != nil {
		return err
	}
	o.Doing("waiting to become a voting member of the cluster: it has to catch up")
	return promote(ctx, member)
}

// watchOver returns an error when the others report that the member is not in the cluster.
func (n *neighbours) watchOver(ctx context.Context, member *embed.Etcd, o Options) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		views, silent := n.ask(ctx)
		if err := o.Cluster.refuse(o.DataDir, member.Server.Cluster().ID(), member.Server.MemberID(), views); err != nil && ctx.Err() == nil {
			return err
		}
		if len(silent) > 0 && member.Server.Leader() == 0 {
			o.Doing("waiting for the other members of the cluster" + because(silent))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// isOnly reports whether a member is the only one in its cluster.
func isOnly(server *etcdserver.EtcdServer) bool {
	members := server.Cluster().Members()
	return len(members) == 1 && members[0].ID == server.MemberID()
}

// tellAddress updates the member's address in the cluster if it has changed.
func tellAddress(ctx context.Context, member *embed.Etcd, address string) error {
	for {
		m := member.Server.Cluster().Member(member.Server.MemberID())
		if m == nil || slices.Equal(m.PeerURLs, []string{address}) {
			return nil
		}
		changed := membership.Member{ID: m.ID, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{address}, IsLearner: m.IsLearner}}
		_, err := member.Server.UpdateMember(ctx, changed)
		if err == nil {
			return nil
		}
		if err := again(ctx, fmt.Errorf("tell the other members the address %s: %w", address, err)); err != nil {
			return err
		}
	}
}

// promote makes a learner a voter once it has caught up.
func promote(ctx context.Context, member *embed.Etcd) error {
	id := member.Server.MemberID()
	for {
		err := errors.New("the log does not show yet that it is a member")
		if m := member.Server.Cluster().Member(id); m != nil {
			if !m.IsLearner {
				return nil
			}
			if _, err = member.Server.PromoteMember(ctx, uint64(id)); err == nil || errors.Is(err, membership.ErrMemberNotLearner) {
				return nil
			}
		}
		if err := again(ctx, fmt.Errorf("become a voting member: %w", err)); err != nil {
			return err
		}
	}
}

// again waits before retrying what failed with err.
func again(ctx context.Context, err error) error {
	if !backoff.Wait(ctx, 200*time.Millisecond) {
		return cmp.Or(err, ctx.Err())
	}
	return nil
}

// logIdentity reads the member and cluster IDs from the log of a data directory.
func logIdentity(dataDir string) (cluster, id types.ID, err error) {
	segments, err := filepath.Glob(filepath.Join(memberDir(dataDir), "member", "wal", "*.wal"))
	if err != nil {
		return 0, 0, err
	}
	slices.Sort(segments)
	for _, segment := range segments {
		file, err := os.Open(segment)
		if err != nil {
			return 0, 0, err
		}
		defer file.Close()
		decoder := wal.NewDecoder(fileutil.NewFileReader(file))
		for {
			var record walpb.Record
			if err := decoder.Decode(&record); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return 0, 0, fmt.Errorf("%w: %s: %w", ErrDamaged, segment, err)
			}
			switch record.GetType() {
			case wal.CrcType:
				decoder.UpdateCRC(record.GetCrc())
			case wal.MetadataType:
				var m etcdserverpb.Metadata
				if err := proto.Unmarshal(record.Data, &m); err != nil {
					return 0, 0, fmt.Errorf("%w: %s: %w", ErrDamaged, segment, err)
				}
				return types.ID(m.GetClusterID()), types.ID(m.GetNodeID()), nil
			}
		}
	}
	return 0, 0, fmt.Errorf("%w: the log does not say which member it belongs to", ErrDamaged)
}

// notedMembers returns the cluster members recorded in the database of a data directory. Before its
// first commit there are none.
func notedMembers(dataDir string) ([]*membership.Member, error) {
	path := filepath.Join(memberDir(dataDir), "member", "snap", "db")
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := databaseSize(file)
	if err != nil || size == 0 {
		return nil, err
	}
	p, err := openPages(file, size, func(uint64, string) {}) // damage is reported elsewhere
	if err != nil {
		return nil, nil // as above
	}
	var members []*membership.Member
	err = p.buckets(func(bucket string) bool { return bucket == "members" }, func(_ string, _ uint64, e element) error {
		m := &membership.Member{}
		if err := json.NewDecoder(bytes.NewReader(e.value)).Decode(m); err != nil {
			return fmt.Errorf("%w: %s: a member of the cluster: %w", ErrDamaged, path, err)
		}
		members = append(members, m)
		return nil
	})
	return members, err
}

// refuseAlone fails if the data directory of a cluster member is opened as a single member.
func refuseAlone(dataDir string) error {
	noted, err := notedMembers(dataDir)
	if err != nil || len(noted) < 2 {
		return err
	}
	return fmt.Errorf("%w: the data directory %s is that of one of %d members of a cluster (%s): start it with --cluster-peers, and use --endpoint for commands; to continue with a single server, restore a backup",
		errForeign, dataDir, len(noted), memberList(noted))
}

// whyStopped says why the embedded member has stopped by itself.
func whyStopped(ctx context.Context, member *embed.Etcd, o Options) error {
	stopped := errors.New("the embedded etcd stopped on its own")
	c, server := o.Cluster, member.Server
	if c == nil {
		return stopped
	}
	if server.Cluster().Member(server.MemberID()) == nil {
		return fmt.Errorf("%w: %s was removed from the cluster: %s", errRemoved, c.Name, c.adviceReplace())
	}
	others, err := newNeighbours(c, server.Cluster().Members())
	if err != nil {
		return stopped
	}
	views, _ := others.ask(ctx)
	return cmp.Or(c.refuse(o.DataDir, server.Cluster().ID(), server.MemberID(), views), stopped)
}
