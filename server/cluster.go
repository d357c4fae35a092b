package main

import (
	"cmp"
	"os"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// cluster returns the settings of the cluster of embedded stores, or nil for a single one. Invalid
// peers are left to checkCluster.
func (c *config) cluster() *store.Cluster {
	if len(c.ClusterPeers) == 0 {
		return nil
	}
	cluster := &store.Cluster{
		Name: c.serverName(), Listen: c.ClusterListen, Join: c.ClusterJoin,
		CertFile: c.ClusterCertFile, KeyFile: c.ClusterKeyFile, CAFile: c.ClusterCAFile,
	}
	for _, text := range c.ClusterPeers {
		peer, _ := store.ParsePeer(text)
		cluster.Peers = append(cluster.Peers, peer)
	}
	return cluster
}

// serverName returns the display name of this server.
func (c *config) serverName() string {
	host, _ := os.Hostname() // only used for the address of this server, which has a flag
	return cmp.Or(c.Name, host)
}

// severalServers reports whether other servers may share the store.
func (c *config) severalServers() bool { return len(c.EtcdEndpoints) > 0 || len(c.ClusterPeers) > 0 }

// checkCluster validates the settings of a cluster of embedded stores.
func (c *config) checkCluster(wrong func(format string, args ...any)) {
	files := []struct{ name, value string }{
		{"cluster-ca-file", c.ClusterCAFile}, {"cluster-cert-file", c.ClusterCertFile}, {"cluster-key-file", c.ClusterKeyFile},
	}
	if len(c.ClusterPeers) == 0 {
		for _, f := range append(files, struct{ name, value string }{"cluster-listen", c.ClusterListen}) {
			if f.value != "" {
				wrong("%s: needs cluster-peers", f.name)
			}
		}
		if c.ClusterJoin {
			wrong("cluster-join: needs cluster-peers")
		}
		return
	}
	if len(c.EtcdEndpoints) > 0 {
		wrong("cluster-peers: must be absent when etcd-endpoints is set: one of them holds the objects")
	}
	sound := true
	for _, text := range c.ClusterPeers {
		if _, err := store.ParsePeer(text); err != nil {
			wrong("cluster-peers: %w", err)
			sound = false
		}
	}
	if !sound {
		return
	}
	cluster := c.cluster()
	if err := cluster.Check(); err != nil {
		wrong("cluster-peers: %w", err)
		return
	}
	for _, f := range files {
		switch {
		case cluster.Secure() && f.value == "":
			wrong("%s: is required: the servers of the cluster identify each other by certificates", f.name)
		case !cluster.Secure() && f.value != "":
			wrong("%s: must be absent if the addresses in cluster-peers are plain HTTP", f.name)
		}
	}
	if len(c.ClusterPeers) > 1 && c.KeyFile == "" {
		wrong("key-file: is required with cluster-peers: every server of the cluster needs the same key")
	}
}
