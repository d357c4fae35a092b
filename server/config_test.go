package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// loaded parses a command line as serve does.
func loaded(t *testing.T, args []string, environment map[string]string, file string) (config, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	var c config
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.define(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c, c.load(flags, func(name string) string { return environment[name] })
}

func TestPrecedenceOfSettings(t *testing.T) {
	for _, c := range []struct {
		name, file string
		env        map[string]string
		args       []string
		want       string
	}{
		{name: "default", want: "info"},
		{name: "file over default", file: "log_level: warn", want: "warn"},
		{name: "variable over file", file: "log_level: warn", env: map[string]string{"SCHEDULER_LOG_LEVEL": "error"}, want: "error"},
		{name: "flag over variable", file: "log_level: warn", env: map[string]string{"SCHEDULER_LOG_LEVEL": "error"}, args: []string{"--log-level=debug"}, want: "debug"},
		{name: "flag over file", file: "log_level: warn", args: []string{"--log-level=debug"}, want: "debug"},
		{name: "flag with the default value", file: "log_level: warn", args: []string{"--log-level=info"}, want: "info"},
		{name: "empty variable is absent", file: "log_level: warn", env: map[string]string{"SCHEDULER_LOG_LEVEL": ""}, want: "warn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := loaded(t, append(c.args, "--data-dir=x"), c.env, c.file)
			if err != nil || got.LogLevel != c.want {
				t.Fatalf("log level %q (%v), want %q", got.LogLevel, err, c.want)
			}
		})
	}
}

// TestEverySettingHasThreeSpellings sets each setting by flag, by environment variable and by key, and expects the same
// configuration.
func TestEverySettingHasThreeSpellings(t *testing.T) {
	values := map[string]string{
		"data-dir": "d", "cluster-peers": "a=https://a:1,b=https://b:2", "cluster-listen": "127.0.0.1:3", "cluster-join": "true",
		"cluster-ca-file": "ca", "cluster-cert-file": "c", "cluster-key-file": "k", "etcd-endpoints": "http://a:1,http://b:2", "etcd-ca-file": "ca", "etcd-cert-file": "c", "etcd-key-file": "k",
		"etcd-username": "u", "name": "one", "advertise-url": "https://one.example.com:8665", "peer-ca-file": "pca", "lease": "20s", "upgrade-window": "1h0m0s", "etcd-password-file": "p", "key-file": "seal", "quota": "8Gi", "min-free-space": "1Gi", "keep-revisions": "20m0s",
		"store-timeout": "3s", "store-patience": "4s", "listen": "127.0.0.1:1", "tls-cert-file": "cert", "tls-key-file": "key", "client-ca-file": "cca", "insecure": "true",
		"max-body": "2Mi", "max-simulation": "3Mi", "max-connections": "7", "max-connections-per-ip": "8", "login-failures-per-second": "0.5",
		"login-failure-burst": "9", "drain-time": "1m0s", "log-level": "debug", "log-format": "json", "debug-listen": "127.0.0.1:2",
		"webhook-listen": "0.0.0.0:8443", "webhook-url": "https://scheduler.example.com:8443", "webhook-timeout": "5s", "webhook-exclude-namespaces": "a", "spot-return-after": "1m0s",
		"audit-log": "audit.log", "audit-log-max-size": "5Mi", "audit-log-max-files": "3", "audit-required": "true",
		"history-dir": "h", "history-retention": "24h0m0s", "history-max-size": "7Mi",
		"tracing-endpoint": "https://otel.example.com:4317", "tracing-protocol": "grpc", "tracing-headers-file": "h", "tracing-ca-file": "tca",
		"tracing-insecure": "true", "tracing-sample-ratio": "0.5",
		"outbound-allow": "a.example.com", "outbound-deny": "10.0.0.0/8",
		"auth": `{"jwt":[{"name":"ci","issuer":"https://ci.example.com","audiences":["a"],"bindings":[{"claims":{"sub":"x"},"role":"viewer"}]}]}`,
	}
	var table config
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	table.define(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == configFlag {
			return
		}
		value, ok := values[f.Name]
		if !ok {
			t.Errorf("no example for setting %s", f.Name)
			return
		}
		set := func(args []string, env map[string]string, file string) string {
			// Some settings only make sense together with others, so there is no check.
			var c config
			own := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			c.define(own)
			if file != "" {
				path := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
					t.Fatal(err)
				}
				env = map[string]string{"SCHEDULER_CONFIG": path}
			}
			if err := own.Parse(args); err != nil {
				t.Fatal(err)
			}
			if err := fill(own, func(name string) string { return env[name] }); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			c.ConfigFile = ""
			return fmt.Sprintf("%+v", c)
		}
		byFlag := set([]string{"--" + f.Name + "=" + value}, nil, "")
		byVariable := set(nil, map[string]string{"SCHEDULER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")): value}, "")
		inFile := value
		if f.Name == "etcd-endpoints" {
			inFile = `["http://a:1", "http://b:2"]`
		}
		if f.Name == "cluster-peers" {
			inFile = `["a=https://a:1", "b=https://b:2"]`
		}
		byKey := set(nil, nil, strings.ReplaceAll(f.Name, "-", "_")+": "+inFile)
		if byFlag != byVariable || byFlag != byKey {
			t.Errorf("%s:\nflag     %s\nvariable %s\nkey      %s", f.Name, byFlag, byVariable, byKey)
		}
		if byFlag == set(nil, nil, "") {
			t.Errorf("%s has no effect", f.Name)
		}
	})
}

func TestConfigurationIsStrict(t *testing.T) {
	for _, c := range []struct {
		name, file string
		args       []string
		env        map[string]string
		want       string
	}{
		{name: "unknown key", file: "lisen: x", want: `"lisen" is not a known key; the keys are advertise_url, audit_log, audit_log_max_files, audit_log_max_size, audit_required, auth, client_ca_file, cluster_ca_file, cluster_cert_file`},
		{name: "flag spelling", file: "log-level: warn", want: `"log-level" is not a known key`},
		{name: "config in config", file: "config: x", want: `"config" is not a known key`},
		{name: "repeated key", file: "log_level: warn\nlog_level: info\n", want: `key "log_level" already set`},
		{name: "wrong type", file: "max_connections: many", want: "configuration key max_connections: "},
		{name: "list for a text", file: "listen: [a]", want: "configuration key listen: takes one string, not a list"},
		{name: "object", file: "listen: {a: b}", want: "configuration key listen: takes one string, not an object"},
		{name: "no value", file: "listen:", want: "configuration key listen: has no value"},
		{name: "list of numbers", file: "etcd_endpoints: [1]", want: "configuration key etcd_endpoints: element 0 must be a string"},
		{name: "not a map", file: "- a", want: "configuration file "},
		{name: "variable", env: map[string]string{"SCHEDULER_QUOTA": "big"}, want: `environment variable SCHEDULER_QUOTA: "big" is not a size`},
		{name: "missing file", args: []string{"--config=/nonexistent"}, want: "configuration file: open /nonexistent"},
		{name: "level", args: []string{"--log-level=loud"}, want: `log-level: "loud" is not one of debug, info, warn, error`},
		{name: "format", args: []string{"--log-format=xml"}, want: `log-format: "xml" is not one of text, json`},
		{name: "address", args: []string{"--listen=8665"}, want: `listen: "8665" is not an address`},
		{name: "half TLS", args: []string{"--tls-cert-file=x"}, want: "tls-cert-file and tls-key-file: must be set together"},
		{name: "client CA alone", args: []string{"--client-ca-file=x"}, want: "client-ca-file: requires tls-cert-file"},
		{name: "both stores", args: []string{"--etcd-endpoints=a"}, want: "data-dir: must not be set together with etcd-endpoints"},
		{name: "exposed", args: []string{"--listen=:8665"}, want: "listen: :8665 is not a loopback address, so tls-cert-file and tls-key-file are required"},
		{name: "exposed debug address", args: []string{"--debug-listen=:1"}, want: `debug-listen: ":1" is not a loopback address`},
		{name: "webhook address", args: []string{"--webhook-listen=8443"}, want: `webhook-listen: "8443" is not an address`},
		{name: "webhook that is waited for too long", args: []string{"--webhook-listen=127.0.0.1:1", "--webhook-timeout=31s"}, want: "webhook-timeout: 31s must be full seconds from 1s to 30s"},
		{name: "webhook that is waited for half a second", args: []string{"--webhook-listen=127.0.0.1:1", "--webhook-timeout=1500ms"}, want: "webhook-timeout: 1.5s must be full seconds"},
		{name: "webhook nowhere", args: []string{"--webhook-url=https://a:1"}, want: "webhook-url: requires webhook-listen"},
		{name: "webhook on any address", args: []string{"--webhook-listen=0.0.0.0:8443"}, want: "webhook-url: is required, because clusters cannot reach the server at the webhook-listen address 0.0.0.0:8443"},
		{name: "webhook everywhere", args: []string{"--webhook-listen=:8443"}, want: "webhook-url: is required"},
		{name: "webhook without TLS", args: []string{"--webhook-listen=:8443", "--webhook-url=http://a:1"}, want: `webhook-url: "http://a:1" is not an address of the form https://host:port`},
		{name: "webhook with a path", args: []string{"--webhook-listen=:8443", "--webhook-url=https://a:1/x"}, want: "is not an address of the form https://host:port"},
		{name: "outbound nonsense", args: []string{"--outbound-deny=10.0.0.0/8,http://a"}, want: `outbound-deny: "http://a" is neither an address, nor a range`},
		{name: "outbound never", args: []string{"--outbound-allow=169.254.169.254"}, want: "outbound-allow: 169.254.169.254 is a link-local address, which the server never connects to"},
		{name: "audit without a log", args: []string{"--audit-required"}, want: "audit-required: requires audit-log"},
		{name: "small audit log", args: []string{"--audit-log-max-size=1Ki"}, want: "audit-log-max-size: 1Ki must be at least 1Mi"},
		{name: "no audit log files", args: []string{"--audit-log-max-files=0"}, want: "audit-log-max-files: 0 must be at least 1"},
		{name: "collector's address", args: []string{"--tracing-endpoint=otel:4317"}, want: "tracing-endpoint: it is not an address of the form https://host:port"},
		{name: "collector's address with a password", args: []string{"--tracing-endpoint=https://u:p@otel:4317"}, want: "tracing-endpoint: it is not an address of the form https://host:port"},
		{name: "unencrypted traces", args: []string{"--tracing-endpoint=http://otel.example.com:4318"}, want: "tracing-endpoint: http:// sends traces and headers unencrypted"},
		{name: "gRPC with a path", args: []string{"--tracing-endpoint=https://otel:4317/v1/traces", "--tracing-protocol=grpc"}, want: "tracing-endpoint: with gRPC, it has no path"},
		{name: "authorities without TLS", args: []string{"--tracing-endpoint=http://127.0.0.1:4318", "--tracing-ca-file=config_test.go"}, want: "tracing-ca-file: config_test.go contains no PEM certificate"},
		{name: "protocol of traces", args: []string{"--tracing-protocol=zipkin"}, want: `tracing-protocol: "zipkin" is not one of http, grpc`},
		{name: "part of the traces", args: []string{"--tracing-sample-ratio=1.5"}, want: "tracing-sample-ratio: 1.5 is not between 0 and 1"},
		{name: "no headers", args: []string{"--tracing-headers-file=/nonexistent"}, want: "tracing-headers-file: open /nonexistent"},
		{name: "no return", args: []string{"--spot-return-after=0s"}, want: "spot-return-after: 0s must be above 0"},
		{name: "no connections", args: []string{"--max-connections=0"}, want: "max-connections: 0 must be at least 1"},
		{name: "short lease", args: []string{"--lease=1s"}, want: "lease: 1s must be at least 2s"},
		{name: "invalid advertised URL", args: []string{"--advertise-url=one:8665"}, want: `advertise-url: "one:8665" is not an address of the form https://host:port`},
		{name: "no drain time", args: []string{"--drain-time=0s"}, want: "drain-time: 0s must be above 0"},
		{name: "no patience", args: []string{"--store-patience=0s"}, want: "store-patience: 0s must be above 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loaded(t, append(slices.Clone(c.args), "--data-dir=x"), c.env, c.file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %s", err, c.want)
			}
		})
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	_, err := loaded(t, []string{"--log-level=loud", "--log-format=xml"}, nil, "")
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Fatalf("error %v", err)
	}
}

func TestDefaultsAreComplete(t *testing.T) {
	c, err := loaded(t, []string{"--data-dir=d"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8665" || c.Quota != 0 || c.DrainTime != 10*time.Second || c.sealFile() != filepath.Join("d", "seal.key") {
		t.Fatalf("got %+v", c)
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.1:1": true, "[::1]:1": true, "localhost:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "example.com:1": false, "127.0.0.1": false,
	} {
		if isLoopback(address) != want {
			t.Errorf("%s: got %v", address, !want)
		}
	}
}
