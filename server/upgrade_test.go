package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// ofThePreviousFormat returns the data directory of a server of the previous version.
func ofThePreviousFormat(t *testing.T) (dir string) {
	t.Helper()
	backup, err := os.Create(filepath.Join(t.TempDir(), "backup.tar"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(backup, storetest.Backup(t, filepath.Join("..", "internal", "store", "testdata", "format-3.tar.gz")))
	if err := errors.Join(err, backup.Close()); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	mustCommand(t, "restore", "--data-dir", dir, backup.Name())
	s, err := store.Open(t.Context(), store.Options{DataDir: dir, NoFsync: true, MinFreeBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Client().Put(t.Context(), "/v1/sys/format", "2")
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestUpgradeIsFinishedByACommand checks that the server reports the older format until then, and that existing objects
// are unchanged afterwards.
func TestUpgradeIsFinishedByACommand(t *testing.T) {
	for name, where := range map[string]func(s *runningServer, dir string) []string{
		"of a running server": func(s *runningServer, _ string) []string { return []string{"--endpoint", s.url} },
		"of a stopped one": func(s *runningServer, dir string) []string {
			if err := s.stop(); err != nil {
				s.t.Fatal(err)
			}
			return []string{"--data-dir", dir}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := ofThePreviousFormat(t)
			s := start(t, testConfig(dir))
			info, err := s.client.Server(t.Context())
			if err != nil || info.Store.Format != 2 || info.Store.NewestFormat != 3 {
				t.Fatalf("info %+v, error %v", info, err)
			}
			put(s, placement("shop", "web"))
			before := toJSON(t, s.objects())
			for range 2 { // the second time, there is nothing to do
				args := append([]string{"upgrade", "finish"}, where(s, dir)...)
				if out := mustCommand(t, args...); out != "the store is written in format 3\n" {
					t.Errorf("unexpected output %q", out)
				}
			}
			if err := s.stop(); err != nil {
				t.Fatal(err)
			}
			s = start(t, testConfig(dir))
			if info, err = s.client.Server(t.Context()); err != nil || info.Store.Format != 3 {
				t.Fatalf("info %+v, error %v", info, err)
			}
			if after := toJSON(t, s.objects()); after != before {
				t.Errorf("objects before:\n%s\nafterwards:\n%s", before, after)
			}
		})
	}
}

// TestUpgradeIsNotFinishedBesideAnOlderServer checks that the command names the older server.
func TestUpgradeIsNotFinishedBesideAnOlderServer(t *testing.T) {
	servers, etcd := several(t, 2)
	s := servers[1]
	for key, value := range map[string]string{
		"/v1/sys/format":           "2",
		"/v1/sys/live/servers/old": `{"id":"o","name":"old","url":"http://old","version":"0.9.0","format":2,"revision":1}`,
	} {
		if _, err := etcd.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := command(t, "upgrade", "finish", "--endpoint", s.url)
	if want := `the server "old" at http://old (version 0.9.0) reads formats of the store up to 2, not 3: upgrade it or stop it first`; code != 1 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, output %q, message %q", code, stdout, stderr)
	}
	var info *api.ServerInfo
	eventually.True(t, "the server shows all three", func() (ok bool) {
		var err error
		info, err = s.client.Server(t.Context())
		return err == nil && info.Store.Format == 2 && len(info.Servers) == 3
	})
	for _, member := range info.Servers {
		if want := map[bool]int{true: 2, false: 3}[member.Name == "old"]; member.NewestFormat != want {
			t.Errorf("server %s reads formats up to %d, want %d", member.Name, member.NewestFormat, want)
		}
	}
	if _, err := etcd.Delete(t.Context(), "/v1/sys/live/servers/old"); err != nil {
		t.Fatal(err)
	}
	mustCommand(t, "upgrade", "finish", "--endpoint", s.url)
	p := put(s, placement("shop", "web"))
	stored, err := etcd.Get(t.Context(), "/v1/spec/placement/shop/web")
	if err != nil || len(stored.Kvs) != 1 || strings.Contains(string(stored.Kvs[0].Value), `"metadata"`) {
		t.Errorf("stored %v, %v", stored, err)
	}
	if got := get[*api.Placement](servers[0], api.KeyOf(p)); got.Metadata.UID != p.Metadata.UID {
		t.Errorf("the other server shows %+v", got)
	}
}
