package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// printedToken is the line of a token in the output of init.
var printedToken = regexp.MustCompile(`(?m)^[0-9a-f]{16}\.(\S+)$`)

// initialized runs init on a new directory and returns the directory, the token and the output.
func initialized(t *testing.T, args ...string) (dir, token, output string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "scheduler")
	output = mustCommand(t, append([]string{"init", dir, "--listen", "127.0.0.1:0"}, args...)...)
	tokens := printedToken.FindAllString(output, -1)
	if len(tokens) != 1 {
		t.Fatalf("init printed %d tokens, want 1:\n%s", len(tokens), output)
	}
	return dir, tokens[0], output
}

// loadFile loads a configuration file as serve does.
func loadFile(path string) (config, error) {
	var c config
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.define(flags)
	if err := flags.Set(configFlag, path); err != nil {
		return c, err
	}
	err := c.load(flags, func(string) string { return "" })
	c.StoreTimeout, c.StorePatience = storetest.Patience, storetest.Patience
	return c, err
}

// contents returns the files below a directory with their permissions.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = info.Mode().String() + " " + string(data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

func TestServerStartsWithWhatInitWrote(t *testing.T) {
	dir, token, output := initialized(t, "--host", "scheduler.example.com,192.0.2.7")
	if want := "scheduler-server serve --config " + filepath.Join(dir, "server.yaml") + "\n"; !strings.Contains(output, want) {
		t.Errorf("the output does not say how to start the server:\n%s", output)
	}
	for path, file := range contents(t, dir) {
		if strings.Contains(file, printedToken.FindStringSubmatch(token)[1]) {
			t.Errorf("%s holds the token", path)
		}
		if private := strings.HasSuffix(path, ".key") || strings.HasSuffix(path, "-key.pem"); private && !strings.HasPrefix(file, "-rw------- ") {
			t.Errorf("%s can be read by others: %s", path, file[:10])
		}
	}

	c, err := loadFile(filepath.Join(dir, "server.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(dir, "ca.pem")
	s := start(t, c, func(o *client.Options) { o.CACertFile, o.Token = authority, api.NewSecret(token) })
	put(s, cluster("berlin"))
	mustCommand(t, "token", "list", "--endpoint", s.url, "--ca-cert-file", authority, "--token", token)
	for name, options := range map[string]client.Options{
		"without the token":     {CACertFile: authority},
		"without the authority": {Token: api.NewSecret(token)},
	} {
		options.Endpoint, options.MaxRetries = s.url, -1
		stranger, err := client.New(options)
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		if err := stranger.Call(t.Context(), "GET", "/v1/clusters", nil, nil); err == nil {
			t.Errorf("%s: the server answered", name)
		}
	}
	roots, err := readAuthorities("ca", authority)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"scheduler.example.com", "192.0.2.7", "localhost", "127.0.0.1", "::1"} {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{RootCAs: roots, ServerName: host})
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		conn.Close()
	}
}

func TestInitWithAGivenCertificate(t *testing.T) {
	certificate, key := selfSigned(t)
	dir, token, output := initialized(t, "--tls-cert-file", certificate, "--tls-key-file", key)
	if strings.Contains(output, "CA_CERT_FILE") || strings.Contains(output, "ca.pem") {
		t.Errorf("the output names an authority that was not made:\n%s", output)
	}
	if _, err := os.Stat(filepath.Join(dir, "ca.pem")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an authority was made: %v", err)
	}
	c, err := loadFile(filepath.Join(dir, "server.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, c, func(o *client.Options) { o.CACertFile, o.Token = certificate, api.NewSecret(token) })
	put(s, cluster("berlin"))
	for want, args := range map[string][]string{
		"tls-cert-file and tls-key-file: must be set together": {"--tls-cert-file", certificate},
		"tls-cert-file and tls-key-file: open ":                {"--tls-cert-file", certificate, "--tls-key-file", "/nonexistent"},
		"host: must be absent if tls-cert-file is set":         {"--tls-cert-file", certificate, "--tls-key-file", key, "--host", "a.example.com"},
	} {
		other := filepath.Join(t.TempDir(), "scheduler")
		if code, stdout, stderr := command(t, append([]string{"init", other}, args...)...); code != 1 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d: %s%s, want %q", args, code, stdout, stderr, want)
		}
		if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: files were left: %v", args, err)
		}
	}
}

func TestInitNeverOverwrites(t *testing.T) {
	dir, _, _ := initialized(t)
	before := contents(t, dir)
	code, stdout, stderr := command(t, "init", dir)
	if code != 1 || stdout != "" {
		t.Fatalf("a second time: exit code %d, %s", code, stdout)
	}
	for _, name := range []string{"server.yaml", "ca.pem", "ca-key.pem", "server.pem", "server-key.pem"} {
		if !strings.Contains(stderr, filepath.Join(dir, name)+" exists already") {
			t.Errorf("the message does not name %s: %s", name, stderr)
		}
	}
	if !strings.Contains(stderr, "data-dir: "+filepath.Join(dir, "data")+" is not empty") {
		t.Errorf("the message does not name the data directory: %s", stderr)
	}
	for path, file := range contents(t, dir) {
		if before[path] != file {
			t.Errorf("%s was changed", path)
		}
		delete(before, path)
	}
	if len(before) != 0 {
		t.Errorf("removed: %v", sortedKeys(before))
	}
}

func TestInitThatFailsLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		file string // in the directory from before
		want string
	}{
		"address":        {args: []string{"--listen", "8665"}, want: "listen: \"8665\" is not an address"},
		"host":           {args: []string{"--host", "a_b"}, want: "host: \"a_b\" is neither a DNS name nor an IP address"},
		"user":           {args: []string{"--user", "no-such-user"}, want: `user: there is no user "no-such-user"`},
		"certificate":    {file: "server.pem", want: "server.pem exists already"},
		"data":           {file: "data/etcd", want: "is not empty, it holds etcd"},
		"unusable key":   {file: "data/seal.key", want: "seal.key"},
		"no directory":   {file: "data", want: "data"},
		"old authority":  {file: "ca-key.pem", want: "ca-key.pem exists already"},
		"configuration":  {file: "server.yaml", want: "server.yaml exists already"},
		"two that exist": {args: []string{"--data-dir", "/dev/null"}, file: "server.yaml", want: "data-dir: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "scheduler")
			if c.file != "" {
				path := filepath.Join(dir, c.file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := contents(t, dir)
			code, stdout, stderr := command(t, append([]string{"init", dir}, c.args...)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
			after := contents(t, dir)
			// Every use of a data directory leaves these behind, and they hold nothing.
			delete(after, filepath.Join(dir, "data", "LOCK"))
			delete(after, filepath.Join(dir, "data", "RESERVE"))
			if !slices.Equal(sortedKeys(before), sortedKeys(after)) {
				t.Errorf("files before %v, after %v", sortedKeys(before), sortedKeys(after))
			}
		})
	}
}

func TestInitForAnotherUser(t *testing.T) {
	name := "nobody"
	if os.Getuid() != 0 {
		current, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		name = current.Username
	}
	account, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	dir, _, _ := initialized(t, "--user", name)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; strconv.Itoa(int(uid)) != account.Uid {
			t.Errorf("%s belongs to %d", path, uid)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCertificateIsReplacedWhileTheServerRuns(t *testing.T) {
	dir, token, _ := initialized(t, "--host", "scheduler.example.com")
	c, err := loadFile(filepath.Join(dir, "server.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(dir, "ca.pem")
	s := start(t, c, func(o *client.Options) { o.CACertFile, o.Token = authority, api.NewSecret(token) })
	roots, err := readAuthorities("ca", authority)
	if err != nil {
		t.Fatal(err)
	}
	serial := func(host string) string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{RootCAs: roots, ServerName: host})
		if err != nil {
			return ""
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial("scheduler.example.com")
	mustCommand(t, "certificate", dir)
	eventually.True(t, "the server uses a new certificate for the same name", func() bool {
		now := serial("scheduler.example.com")
		return now != "" && now != first
	})
	mustCommand(t, "certificate", dir, "--host", "other.example.com")
	eventually.True(t, "the server uses a certificate for another name", func() bool { return serial("other.example.com") != "" })
	if serial("scheduler.example.com") != "" {
		t.Error("the certificate is still for the first name")
	}
	if err := s.client.Call(t.Context(), "GET", "/v1/clusters", nil, nil); err != nil {
		t.Errorf("clients that trust the authority: %v", err)
	}
}

func TestCertificateCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	mustCommand(t, "certificate", dir, "--name", "a", "--host", "a.example.com,*.peers.example.com", "--valid-for", "48h")
	authority, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	mustCommand(t, "certificate", dir, "--name", "b")
	if again, err := os.ReadFile(filepath.Join(dir, "ca.pem")); err != nil || !bytes.Equal(authority, again) {
		t.Errorf("the second certificate is not from the same authority: %v", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "a.pem"), filepath.Join(dir, "a-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.example.com", "*.peers.example.com", "localhost"}; !slices.Equal(pair.Leaf.DNSNames, want) {
		t.Errorf("names %v, want %v", pair.Leaf.DNSNames, want)
	}

	other := t.TempDir()
	_, key := selfSigned(t)
	data, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "ca-key.pem"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{dir, "--name", "ca"}, `name: "ca" is not the name of a certificate`},
		{[]string{dir, "--name", "../a"}, `name: "../a" is not the name of a certificate`},
		{[]string{dir, "--valid-for", "0s"}, "valid-for: 0s must be above 0"},
		{[]string{dir, "--host", "no host"}, `host: "no host" is neither`},
		{[]string{other}, "read the certificate authority in " + other},
	} {
		if code, stdout, stderr := command(t, append([]string{"certificate"}, c.args...)...); code != 1 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d: %s%s", c.args, code, stdout, stderr)
		}
	}
}

// commentedSetting is a line of the configuration file that users may activate.
var commentedSetting = regexp.MustCompile(`(?m)^# ([a-z_]+:( .*)?|  .*)$`)

func TestConfigurationFileSuggestsValidSettings(t *testing.T) {
	certificate, key := selfSigned(t)
	for name, c := range map[string]config{
		"plain": {DataDir: t.TempDir(), Listen: "127.0.0.1:0"},
		"TLS":   {DataDir: `/with "quotes" and: colons`, Listen: "0.0.0.0:8665", TLSCertFile: certificate, TLSKeyFile: key},
	} {
		text, err := writeConfiguration(&c)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "server.yaml")
		for _, variant := range [][]byte{text, commentedSetting.ReplaceAll(text, []byte("$1"))} {
			if err := os.WriteFile(path, variant, 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := loadFile(path)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, variant)
			}
			if loaded.DataDir != c.DataDir || loaded.Listen != c.Listen {
				t.Errorf("%s: loaded %q and %q, want %q and %q", name, loaded.DataDir, loaded.Listen, c.DataDir, c.Listen)
			}
		}
		if n := len(commentedSetting.FindAll(text, -1)); n < 15 {
			t.Errorf("%s: only %d lines were tried", name, n)
		}
	}
}

func TestFoundHosts(t *testing.T) {
	hosts, err := namedHosts(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil && ip.IsLinkLocalUnicast() {
			t.Errorf("%s is of no use to others", host)
		}
	}
	for _, local := range localHosts {
		if !slices.Contains(hosts, local) {
			t.Errorf("%s is missing in %v", local, hosts)
		}
	}
}
