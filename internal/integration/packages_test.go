//go:build integration

package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

func TestUnitIsHardened(t *testing.T) {
	t.Parallel()
	text, err := exec.Command("systemd-analyze", "security", "--offline=true", "../../deploy/packages/scheduler-server.service").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	found := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+) `).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no exposure level in\n%s", text)
	}
	if exposure, err := strconv.ParseFloat(string(found[1]), 64); err != nil || exposure > 2 {
		t.Errorf("exposure %s, want at most 2.0:\n%s", found[1], text)
	}
}

// machine mounts a file system that has everything of this machine and keeps changes for itself. What it adds goes to
// file systems that are mounted here, which are empty.
const machine = `
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t tmpfs tmpfs OVER
mkdir OVER/upper OVER/work OVER/root
mount -t overlay overlay -o lowerdir=/,upperdir=OVER/upper,workdir=OVER/work OVER/root
root=OVER/root
mount -t proc proc $root/proc
mount -t tmpfs -o mode=755 tmpfs $root/dev
mknod -m 666 $root/dev/null c 1 3
mknod -m 666 $root/dev/zero c 1 5
mknod -m 666 $root/dev/full c 1 7
mknod -m 666 $root/dev/random c 1 8
mknod -m 666 $root/dev/urandom c 1 9
mknod -m 666 $root/dev/tty c 5 0
mkdir $root/dev/pts $root/dev/shm
mount -t devpts devpts $root/dev/pts
mount -t tmpfs tmpfs $root/dev/shm
ln -s pts/ptmx $root/dev/ptmx
mount -t tmpfs -o mode=755 tmpfs $root/run
mount -t tmpfs tmpfs $root/tmp
cp PACKAGE $root/dev/shm/package
`

// service installs the Debian package, and starts a systemd that runs the check.
const service = machine + `
chroot $root dpkg --install /dev/shm/package
chroot $root scheduler-server init /etc/scheduler --data-dir /var/lib/scheduler --user scheduler --host localhost >$root/run/init
mount -t sysfs -o ro sysfs $root/sys
mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
mkdir $root/run/result $root/run/old
mount --bind RESULT $root/run/result
mkdir $root/etc/systemd/system/scheduler-server.service.d
cat >$root/etc/systemd/system/scheduler-server.service.d/alone.conf <<END
[Unit]
DefaultDependencies=no
[Service]
StandardOutput=append:/run/result/log
StandardError=append:/run/result/log
END
cat >$root/run/check <<'END'
set -x
ready() { curl -fsS --cacert /etc/scheduler/ca.pem https://localhost:8665/readyz; }
systemctl start scheduler-server
ready
systemctl show -p ActiveState,StatusText,User scheduler-server
grep -E '^(Uid|NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/$(systemctl show -P MainPID scheduler-server)/status
systemctl reload scheduler-server
ready
systemctl restart scheduler-server
systemctl show -p ActiveState scheduler-server
dpkg --install /dev/shm/package
systemctl show -p ActiveState scheduler-server
ls -l /var/lib
systemctl stop scheduler-server
systemctl show -p ActiveState,Result,ExecMainStatus scheduler-server
systemctl enable --now scheduler-server
systemctl show -p ActiveState,UnitFileState scheduler-server
dpkg --remove scheduler-server
systemctl show -p ActiveState,LoadState scheduler-server
ls -l /var/lib
END
cat >$root/etc/systemd/system/check.service <<END
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh /run/check
ExecStopPost=systemctl exit 0
StandardOutput=append:/run/result/check
StandardError=append:/run/result/check
END
cd $root
pivot_root . run/old
umount -l /run/old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=check.service --show-status=no --log-target=null
`

// released returns the file with this name that make release-dry-run has built.
func released(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob("../../dist/" + name)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in dist/: %v %v, want one: run make release-dry-run", name, found, err)
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A systemd of its own, in namespaces, starts the installed service with everything that the unit says, reloads, restarts,
// upgrades, stops and removes it. The rest of the system is not started.
func TestServiceUnderSystemd(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can start a systemd of its own")
	}
	result := t.TempDir()
	script := strings.NewReplacer("OVER", t.TempDir(), "PACKAGE", released(t, "*.deb"), "RESULT", result).Replace(service)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	command := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup", "--", "sh", "-euc", script)
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(result, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	text, log := read("check"), read("log")
	for _, want := range []string{
		`ActiveState=active\n`, `StatusText=ready\n`, `User=scheduler\n`,
		`NoNewPrivs:\s1\n`, `Seccomp:\s2\n`, `CapEff:\s0+\n`, `CapBnd:\s0+\n`, `drwx------ .* scheduler +scheduler .* scheduler\n`,
		`ActiveState=inactive\n`, `Result=success\n`, `ExecMainStatus=0\n`, `UnitFileState=enabled\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %q in the output", want)
		}
	}
	if strings.Contains(text, "curl: ") || strings.Contains(text, "Failed") {
		t.Error("a command failed")
	}
	if n := strings.Count(log, "the server is ready"); n != 4 || !strings.Contains(log, "the configuration was reloaded") {
		t.Errorf("the server was ready %d times, want 4, and was to reload its configuration", n)
	}
	if t.Failed() {
		t.Logf("the commands:\n%s\nthe log of the server:\n%s", text, log)
	}
}

// What the RPM package installs works, and goes with it, except for the user that data belongs to.
func TestRPM(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can install a package in a file system of its own")
	}
	script := strings.NewReplacer("OVER", t.TempDir(), "PACKAGE", released(t, "*.rpm")).Replace(machine + `
# There are no packages in the database of RPM that it could depend on.
chroot $root rpm --install --nodeps /dev/shm/package >&2
chroot $root rpm --verify --nodeps scheduler-server
stat -c '%A %U:%G %n' $root/usr/bin/scheduler-server $root/usr/lib/systemd/system/scheduler-server.service
chroot $root schedulerctl version
chroot $root systemd-analyze verify --man=no scheduler-server.service 2>&1 | grep -F scheduler-server || true
chroot $root rpm --erase scheduler-server >&2
test ! -e $root/usr/bin/scheduler-server
grep ^scheduler: $root/etc/passwd
`)
	command := exec.Command("unshare", "--mount", "--", "sh", "-euc", script)
	var log bytes.Buffer
	command.Stderr = &log
	output, err := command.Output()
	want := regexp.MustCompile(`^-rwxr-xr-x root:root \S+/usr/bin/scheduler-server
-rw-r--r-- root:root \S+/scheduler-server.service
scheduler-server .+
scheduler:x:\d+:\d+:Scheduling server:/var/lib/scheduler:\S*nologin
$`)
	if err != nil || !want.Match(output) {
		t.Errorf("%v\n%s\n%s", err, output, log.Bytes())
	}
}
