package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/install"
)

// config is the configuration of serve.
type config struct {
	ConfigFile string

	DataDir          string
	ClusterPeers     []string
	ClusterListen    string
	ClusterJoin      bool
	ClusterCAFile    string
	ClusterCertFile  string
	ClusterKeyFile   string
	EtcdEndpoints    []string
	EtcdCAFile       string
	EtcdCertFile     string
	EtcdKeyFile      string
	EtcdUsername     string
	EtcdPasswordFile string
	Name             string
	AdvertiseURL     string
	PeerCAFile       string
	Lease            time.Duration
	UpgradeWindow    time.Duration
	KeyFile          string
	Quota            byteSize
	MinFreeSpace     byteSize
	KeepRevisions    time.Duration
	StoreTimeout     time.Duration
	StorePatience    time.Duration

	Listen       string
	TLSCertFile  string
	TLSKeyFile   string
	ClientCAFile string
	Insecure     bool

	MaxBody                byteSize
	MaxSimulation          byteSize
	MaxConnections         int
	MaxConnectionsPerIP    int
	LoginFailuresPerSecond float64
	LoginFailureBurst      int
	DrainTime              time.Duration

	WebhookListen            string
	WebhookURL               string
	WebhookTimeout           time.Duration
	WebhookExcludeNamespaces []string
	SpotReturnAfter          time.Duration

	Auth authSetting

	OutboundAllow []string
	OutboundDeny  []string

	AuditLog         string
	AuditLogMaxSize  byteSize
	AuditLogMaxFiles int
	AuditRequired    bool

	HistoryDir       string
	HistoryRetention time.Duration
	HistoryMaxSize   byteSize

	TracingEndpoint    string
	TracingProtocol    string
	TracingHeadersFile string
	TracingCAFile      string
	TracingInsecure    bool
	TracingSampleRatio float64

	LogLevel    string
	LogFormat   string
	DebugListen string
}

// define defines the flags, one line per setting, from which variables and keys are derived.
func (c *config) define(flags *pflag.FlagSet) {
	c.MinFreeSpace, c.MaxBody, c.MaxSimulation = 256<<20, 1<<20, 64<<20
	c.AuditLogMaxSize, c.HistoryMaxSize = 100<<20, 1<<30

	flags.StringVar(&c.ConfigFile, configFlag, "", "YAML or JSON file with settings; every other flag is a key in it, with _ for -")
	flags.StringVar(&c.DataDir, "data-dir", "", "directory of the embedded store; created if it does not exist")
	flags.StringSliceVar(&c.ClusterPeers, "cluster-peers", nil, "servers whose embedded stores form one cluster, including this one: name=https://host:port,...")
	flags.StringVar(&c.ClusterListen, "cluster-listen", "", "address at which the embedded store listens for the other servers of the cluster (default from cluster-peers)")
	flags.BoolVar(&c.ClusterJoin, "cluster-join", false, "if the data directory is empty, wait for the cluster of the other servers instead of creating one with them")
	flags.StringVar(&c.ClusterCAFile, "cluster-ca-file", "", "PEM certificates that the certificates of the other servers of the cluster must chain to")
	flags.StringVar(&c.ClusterCertFile, "cluster-cert-file", "", "PEM certificate of the embedded store, as a server and as a client of the other servers; reloaded when it changes")
	flags.StringVar(&c.ClusterKeyFile, "cluster-key-file", "", "PEM key of cluster-cert-file")
	flags.StringSliceVar(&c.EtcdEndpoints, "etcd-endpoints", nil, "addresses of an external etcd cluster, instead of the embedded store")
	flags.StringVar(&c.EtcdCAFile, "etcd-ca-file", "", "PEM certificates that the external etcd's certificates must chain to")
	flags.StringVar(&c.EtcdCertFile, "etcd-cert-file", "", "PEM client certificate for the external etcd")
	flags.StringVar(&c.EtcdKeyFile, "etcd-key-file", "", "PEM key of etcd-cert-file")
	flags.StringVar(&c.EtcdUsername, "etcd-username", "", "user name for the external etcd")
	flags.StringVar(&c.EtcdPasswordFile, "etcd-password-file", "", "file with the password for the external etcd")
	flags.StringVar(&c.Name, "name", "", "name of this server, if several share a store (default the host name)")
	flags.StringVar(&c.AdvertiseURL, "advertise-url", "", "address at which the other servers on the store reach the API of this one: https://host:port (default from listen)")
	flags.StringVar(&c.PeerCAFile, "peer-ca-file", "", "PEM certificates that the other servers' certificates must chain to (default the system's)")
	flags.DurationVar(&c.Lease, "lease", 10*time.Second, "how long the other servers wait for a leader that does not respond before one of them takes over")
	flags.DurationVar(&c.UpgradeWindow, "upgrade-window", 24*time.Hour, "how long the store stays readable for the previous version once all servers run a new one; \"upgrade finish\" ends this earlier, 0 = only that ends it")
	flags.StringVar(&c.KeyFile, "key-file", "", "file with the key that encrypts stored secrets; created on first use (default seal.key in the data directory)")
	flags.Var(&c.Quota, "quota", "largest size of the embedded store's database (default half of the disk, at least 4Gi and at most 8Gi)")
	flags.Var(&c.MinFreeSpace, "min-free-space", "free space on the disk below which the embedded store refuses writes")
	flags.DurationVar(&c.KeepRevisions, "keep-revisions", 10*time.Minute, "how long old revisions are kept for clients that page through lists or resume watches")
	flags.DurationVar(&c.StoreTimeout, "store-timeout", 10*time.Second, "time limit for one request to the store")
	flags.DurationVar(&c.StorePatience, "store-patience", 3*time.Second, "how long writes to the store may fail or take before the server is not ready and rejects further writes at once")

	flags.StringVar(&c.Listen, "listen", "127.0.0.1:8665", "address to listen on; port 0 selects a free port")
	flags.StringVar(&c.TLSCertFile, "tls-cert-file", "", "PEM certificate of the server; reloaded when it changes")
	flags.StringVar(&c.TLSKeyFile, "tls-key-file", "", "PEM key of tls-cert-file")
	flags.StringVar(&c.ClientCAFile, "client-ca-file", "", "PEM certificates that clients' certificates must chain to (default: clients need no certificate)")
	flags.BoolVar(&c.Insecure, "insecure", false, "listen on non-loopback addresses even without TLS or tokens")

	flags.Var(&c.MaxBody, "max-body", "largest size of a request body")
	flags.Var(&c.MaxSimulation, "max-simulation", "largest size of a simulation request")
	flags.IntVar(&c.MaxConnections, "max-connections", 4096, "largest number of open connections")
	flags.IntVar(&c.MaxConnectionsPerIP, "max-connections-per-ip", 256, "largest number of open connections per client address")
	flags.Float64Var(&c.LoginFailuresPerSecond, "login-failures-per-second", 1, "sustained rate of failed logins allowed per client address")
	flags.IntVar(&c.LoginFailureBurst, "login-failure-burst", 20, "number of failed logins allowed in a burst per client address")
	flags.DurationVar(&c.DrainTime, "drain-time", 10*time.Second, "how long running requests may take to finish when the server stops")

	flags.Var(&c.Auth, "auth", "trusted issuers of JSON Web Tokens, such as CI systems: an object with the key jwt; see the guide on tokens")

	flags.StringVar(&c.WebhookListen, "webhook-listen", "", "address of the webhook that splits pods in clusters with spot enabled (default: no webhook, and no pods are split)")
	flags.StringVar(&c.WebhookURL, "webhook-url", "", "URL at which the clusters' API servers reach the webhook: https://host:port (default from webhook-listen)")
	flags.DurationVar(&c.WebhookTimeout, "webhook-timeout", install.DefaultTimeout, "how long the clusters' API servers wait for the webhook before they create a pod without it, 1s to 30s")
	flags.StringSliceVar(&c.WebhookExcludeNamespaces, "webhook-exclude-namespaces", []string{"scheduler-system"}, "namespaces whose pods are left alone, in addition to the system namespaces")
	flags.DurationVar(&c.SpotReturnAfter, "spot-return-after", 5*time.Minute, "how long spot nodes must be available again before pods return to them")

	flags.StringSliceVar(&c.OutboundAllow, addresspolicy.AllowFlag, nil, "addresses, ranges (10.0.0.0/8) and names (*.example.com) that the server may connect to for metrics providers, probes, clouds and kubeconfigs; if set, no others are allowed (default: all except link-local and metadata addresses, and loopback only while every listen address is loopback)")
	flags.StringSliceVar(&c.OutboundDeny, addresspolicy.DenyFlag, nil, "addresses, ranges and names that the server must not connect to; takes precedence over outbound-allow")

	flags.StringVar(&c.AuditLog, "audit-log", "", "file for one JSON line for each write and each refused request, or - for standard output (default: no audit log)")
	flags.Var(&c.AuditLogMaxSize, "audit-log-max-size", "size at which the audit log is renamed and another file begun")
	flags.IntVar(&c.AuditLogMaxFiles, "audit-log-max-files", 10, "number of renamed audit logs that are kept")
	flags.BoolVar(&c.AuditRequired, "audit-required", false, "refuse writes as long as the audit log cannot be written")

	flags.StringVar(&c.HistoryDir, "history-dir", "", "directory of the history of decisions, which no other server uses (default history in the data directory; none with an external etcd)")
	flags.DurationVar(&c.HistoryRetention, "history-retention", 90*24*time.Hour, "how long the history of decisions is kept; 0 = none is")
	flags.Var(&c.HistoryMaxSize, "history-max-size", "how much room the history of decisions takes at most, about; the oldest part is deleted")

	flags.StringVar(&c.TracingEndpoint, "tracing-endpoint", "", "address of a collector of OpenTelemetry traces: https://host:port (default: no traces, or, if OTEL_TRACES_EXPORTER is otlp, as the variables OTEL_EXPORTER_OTLP_* say)")
	flags.StringVar(&c.TracingProtocol, "tracing-protocol", "", "http or grpc (default http, or as the variables OTEL_EXPORTER_OTLP_* say)")
	flags.StringVar(&c.TracingHeadersFile, "tracing-headers-file", "", "file with headers for the collector, such as a token: one \"Name: value\" in each line")
	flags.StringVar(&c.TracingCAFile, "tracing-ca-file", "", "PEM certificates that the collector's certificate must chain to (default the system's)")
	flags.BoolVar(&c.TracingInsecure, "tracing-insecure", false, "send traces and headers unencrypted to another machine, if tracing-endpoint begins with http://")
	flags.Float64Var(&c.TracingSampleRatio, "tracing-sample-ratio", 1, "part of the traces to record, from 0 to 1; if a client sends a trace, its choice counts")

	flags.StringVar(&c.LogLevel, "log-level", "info", "lowest level to log: debug, info, warn or error; reloaded on SIGHUP")
	flags.StringVar(&c.LogFormat, "log-format", "text", "text or json")
	flags.StringVar(&c.DebugListen, "debug-listen", "", "loopback address to serve pprof profiles on, for debugging")
}

// load completes the flags from the environment and the configuration file, and validates them
// without side effects.
func (c *config) load(flags *pflag.FlagSet, getenv func(string) string) error {
	if err := fill(flags, getenv); err != nil {
		return err
	}
	return c.check()
}

func (c *config) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case c.DataDir == "" && len(c.EtcdEndpoints) == 0:
		wrong("data-dir: is required unless etcd-endpoints is set")
	case c.DataDir != "" && len(c.EtcdEndpoints) > 0:
		wrong("data-dir: must not be set together with etcd-endpoints: choose one store")
	case c.DataDir == "" && c.KeyFile == "":
		wrong("key-file: is required with etcd-endpoints, because there is no data directory for the key")
	}
	if (c.EtcdCertFile == "") != (c.EtcdKeyFile == "") {
		wrong("etcd-cert-file and etcd-key-file: must be set together")
	}
	if (c.EtcdUsername == "") != (c.EtcdPasswordFile == "") {
		wrong("etcd-username and etcd-password-file: must be set together")
	}
	c.checkCluster(wrong)
	c.checkLeadership(wrong)
	if c.UpgradeWindow < 0 {
		wrong("upgrade-window: %s must not be negative", c.UpgradeWindow)
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		wrong("tls-cert-file and tls-key-file: must be set together")
	}
	if c.ClientCAFile != "" && c.TLSCertFile == "" {
		wrong("client-ca-file: requires tls-cert-file: without TLS, clients present no certificates")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		wrong("listen: %q is not an address: write host:port, such as 127.0.0.1:8665", c.Listen)
	} else if !c.loopback() && !c.tls() && !c.Insecure {
		wrong("listen: %s is not a loopback address, so tls-cert-file and tls-key-file are required (or --insecure, behind a proxy that provides TLS)", c.Listen)
	}
	if c.DebugListen != "" && !isLoopback(c.DebugListen) {
		wrong("debug-listen: %q is not a loopback address: profiles reveal the contents of memory", c.DebugListen)
	}
	for _, count := range []struct {
		name string
		n    int
	}{{"max-connections", c.MaxConnections}, {"max-connections-per-ip", c.MaxConnectionsPerIP}, {"login-failure-burst", c.LoginFailureBurst}} {
		if count.n < 1 {
			wrong("%s: %d must be at least 1", count.name, count.n)
		}
	}
	if !(c.LoginFailuresPerSecond > 0) {
		wrong("login-failures-per-second: %v must be above 0", c.LoginFailuresPerSecond)
	}
	for _, length := range []struct {
		name string
		d    time.Duration
	}{{"keep-revisions", c.KeepRevisions}, {"store-timeout", c.StoreTimeout}, {"store-patience", c.StorePatience}, {"drain-time", c.DrainTime}, {"spot-return-after", c.SpotReturnAfter}} {
		if length.d <= 0 {
			wrong("%s: %s must be above 0", length.name, length.d)
		}
	}
	for _, err := range c.Auth.check() {
		errs = append(errs, err)
	}
	c.checkWebhook(wrong)
	c.checkAudit(wrong)
	c.checkHistory(wrong)
	c.checkTracing(wrong)
	if _, err := c.network(); err != nil {
		errs = append(errs, err)
	}
	if _, err := parseLevel(c.LogLevel); err != nil {
		errs = append(errs, err)
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		wrong("log-format: %q is not one of text, json", c.LogFormat)
	}
	return errors.Join(errs...)
}

func (c *config) tls() bool { return c.TLSCertFile != "" }

func (c *config) loopback() bool { return isLoopback(c.Listen) }

// listens returns the addresses that the server listens on.
func (c *config) listens() []string {
	var all []string
	for _, address := range []string{c.Listen, c.WebhookListen, c.DebugListen, c.ClusterListen} {
		if address != "" {
			all = append(all, address)
		}
	}
	return all
}

// network returns the policy for outbound connections.
func (c *config) network() (*addresspolicy.Policy, error) {
	return addresspolicy.New(addresspolicy.Options{
		Loopback: !slices.ContainsFunc(c.listens(), func(address string) bool { return !isLoopback(address) }),
		Allow:    c.OutboundAllow, Deny: c.OutboundDeny,
	})
}

// sealFile returns the path of the encryption key.
func (c *config) sealFile() string {
	return cmp.Or(c.KeyFile, defaultKeyFile(c.DataDir))
}

func defaultKeyFile(dataDir string) string { return filepath.Join(dataDir, "seal.key") }

// isLoopback reports whether an address is reachable only from this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
