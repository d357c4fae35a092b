package store

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

const mebibyte = 1 << 20

// exitCode is the exit code of a process whose embedded member failed.
const exitCode = 70

// Options configures a store. One of DataDir and Endpoints is required.
type Options struct {
	// DataDir is the directory of the embedded member. It is created if necessary.
	DataDir string
	// Cluster makes the embedded member one of several. If nil, it is a single member.
	Cluster *Cluster
	// Endpoints are the client addresses of an external etcd cluster. The embedded member is then
	// not started.
	Endpoints []string
	// TLS, Username and Password authenticate to the external cluster.
	TLS                *tls.Config
	Username, Password string

	// LeaseTTL is how long one of several servers still leads after its last renewal. Zero means 10
	// seconds.
	LeaseTTL time.Duration
	// Candidate returns what this server reports to the others on the cluster. ID and Revision are
	// filled in. It may be nil.
	Candidate func() Candidate

	// UpgradeWindow is how long the store stays in the format of the previous program version after
	// every server on it can read the new one. Zero means until FinishUpgrade.
	UpgradeWindow time.Duration

	// QuotaBytes limits the embedded member's database. Zero means half of the file
	// system of DataDir, but at least 4 GiB and at most 8 GiB.
	QuotaBytes int64
	// MinFreeBytes is the free space of the file system below which writes are rejected. A part of
	// it is reserved in a file for deletions, which continue to work. Zero means 256 MiB.
	MinFreeBytes int64
	// ResumeFreeBytes is the free space above which writes are accepted again. Zero means a
	// sixteenth more than MinFreeBytes.
	ResumeFreeBytes int64
	// WatchdogInterval is the interval between checks of the free space. Zero means 2 seconds.
	WatchdogInterval time.Duration

	// KeepHistory is the minimum time for which old revisions are kept for readers that page or
	// catch up. Zero means 10 minutes.
	KeepHistory time.Duration
	// KeepRevisions is the maximum number of old revisions that are kept. Zero means 100,000.
	KeepRevisions int64
	// CompactInterval is the interval between compactions. Zero means 1 minute.
	CompactInterval time.Duration

	// MarkInterval is the minimum interval between writes of the high-water mark; it is not written
	// while nobody writes to the store. Zero means 10 seconds.
	MarkInterval time.Duration

	// RequestTimeout is the timeout of every request to etcd. Zero means 10 seconds.
	RequestTimeout time.Duration
	// Patience is how long writes may fail or take before Writable says so. Zero means
	// 3 seconds.
	Patience time.Duration

	// Tracer makes the transactions parts of traces. Nil = there are none.
	Tracer *tracing.Tracer
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Recorder
	// Logger receives the messages of the store and the embedded member. If nil, they are
	// discarded.
	Logger *slog.Logger
	// Doing is called with what Open is about to do, as in "opening the database". It may be nil.
	Doing func(string)
	// NoFsync lets the embedded member lose acknowledged writes in a crash. It is for tests that do
	// not restart.
	NoFsync bool
	// Fatal is called once when the embedded member has failed. It must terminate the process,
	// because etcd hangs afterwards. If nil, a line that starts with "STORE FAILED:" is printed and
	// the process exits with ExitCode.
	Fatal func(error)
	// Now is the clock for the age of revisions. Nil means time.Now.
	Now func() time.Time

	interpose func(clientv3.KV) clientv3.KV // between the store and etcd; only tests set it
	// leaderGap is how long requests wait while the cluster of embedded members has no leader. Only
	// tests set it. Zero means a second.
	leaderGap time.Duration
}

func (o Options) withDefaults() Options {
	o.MinFreeBytes = cmp.Or(o.MinFreeBytes, 256*mebibyte)
	o.ResumeFreeBytes = cmp.Or(o.ResumeFreeBytes, o.MinFreeBytes+o.MinFreeBytes/16)
	o.WatchdogInterval = cmp.Or(o.WatchdogInterval, 2*time.Second)
	o.KeepHistory = cmp.Or(o.KeepHistory, 10*time.Minute)
	o.KeepRevisions = cmp.Or(o.KeepRevisions, 100_000)
	o.CompactInterval = cmp.Or(o.CompactInterval, time.Minute)
	o.MarkInterval = cmp.Or(o.MarkInterval, 10*time.Second)
	o.LeaseTTL = cmp.Or(o.LeaseTTL, 10*time.Second)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 10*time.Second)
	o.Patience = cmp.Or(o.Patience, 3*time.Second)
	o.leaderGap = cmp.Or(o.leaderGap, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Candidate == nil {
		o.Candidate = func() Candidate { return Candidate{} }
	}
	if o.Doing == nil {
		o.Doing = func(string) {}
	}
	if o.Fatal == nil {
		logger := o.Logger
		o.Fatal = func(err error) {
			logger.Error("STORE FAILED", "error", err)
			fmt.Fprintf(os.Stderr, "STORE FAILED: %v\n", err)
			os.Exit(exitCode) //nolint:forbidigo // etcd hangs unless the process is terminated here
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.DataDir == "" && len(o.Endpoints) == 0:
		return fmt.Errorf("store: neither a data directory nor the endpoints of an etcd cluster are given")
	case o.DataDir != "" && len(o.Endpoints) > 0:
		return fmt.Errorf("store: a data directory and the endpoints of an etcd cluster are given; only one of them can hold the objects")
	case o.Cluster != nil && o.DataDir == "":
		return fmt.Errorf("store: the member of a cluster needs a data directory")
	case o.LeaseTTL < time.Second:
		return fmt.Errorf("store: the lease of a server lasts %s, it must last a second or more", o.LeaseTTL)
	case o.ResumeFreeBytes < o.MinFreeBytes:
		return fmt.Errorf("store: writes would resume at %d bytes of free space, below the %d at which they stop", o.ResumeFreeBytes, o.MinFreeBytes)
	}
	if o.Cluster != nil {
		if err := o.Cluster.Check(); err != nil {
			return fmt.Errorf("store: the cluster: %w", err)
		}
	}
	return nil
}

// alone reports whether no other server can be on the store.
func (o Options) alone() bool { return len(o.Endpoints) == 0 && o.Cluster == nil }
