package main

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// member runs one of three etcd members until ctx ends.
func member(ctx context.Context, name, dir, client, peer, cluster string) error {
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = name, dir, cluster
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	at := func(address string) []url.URL { return []url.URL{{Scheme: "http", Host: address}} }
	c.ListenClientUrls, c.AdvertiseClientUrls = at(client), at(client)
	c.ListenPeerUrls, c.AdvertisePeerUrls = at(peer), at(peer)
	etcd, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
		fmt.Fprintln(os.Stdout, "ready")
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil
}
