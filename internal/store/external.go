package store

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-semver/semver"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// reconnect is the backoff for reconnecting. gRPC's default is up to two minutes, long after the
// cluster is back.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}

// connect returns a client of an external cluster after checking the versions of its members: older
// releases lose watch events or serve stale reads after a pause.
func connect(ctx context.Context, o Options) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            o.Endpoints,
		TLS:                  o.TLS,
		Username:             o.Username,
		Password:             o.Password,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		PermitWithoutStream:  true,
		Logger:               zap.New(&slogCore{logger: o.Logger}),
		DialOptions: []grpc.DialOption{grpc.WithUserAgent("scheduler-server"), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: reconnect, MinConnectTimeout: 5 * time.Second,
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %v: %w", o.Endpoints, err)
	}
	reached := 0
	var failure error
	for _, endpoint := range o.Endpoints {
		callCtx, cancel := context.WithTimeout(ctx, o.RequestTimeout)
		status, err := client.Status(callCtx, endpoint)
		cancel()
		if err != nil {
			failure = err
			o.Logger.Warn("etcd member cannot be reached", "endpoint", endpoint, "error", err)
			continue
		}
		reached++
		if err := checkVersion(status.Version); err != nil {
			_ = client.Close()
			return nil, fmt.Errorf("etcd member %s: %w", endpoint, err)
		}
	}
	if reached == 0 {
		_ = client.Close()
		return nil, fmt.Errorf("%w: no etcd member of %v responds: %w", ErrUnavailable, o.Endpoints, failure)
	}
	return client, nil
}

// leastVersions are the first releases of each minor version with every fix that the store relies
// on; later minor versions have them all.
var leastVersions = []semver.Version{
	{Major: 3, Minor: 4, Patch: 42},
	{Major: 3, Minor: 5, Patch: 28},
	{Major: 3, Minor: 6, Patch: 9},
}

func checkVersion(text string) error {
	version, err := semver.NewVersion(text)
	if err != nil {
		return fmt.Errorf("version %q cannot be read: %w", text, err)
	}
	for _, least := range leastVersions {
		if version.Major == least.Major && version.Minor == least.Minor && version.LessThan(least) {
			return fmt.Errorf("version %s is too old: at least %s is needed", text, least)
		}
	}
	if version.LessThan(leastVersions[0]) {
		return fmt.Errorf("version %s is too old: at least %s is needed", text, leastVersions[0])
	}
	return nil
}
