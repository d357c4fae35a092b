package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sassoftware/go-rpmutils"
)

const unitFile = "../packages/scheduler-server.service"

// setting returns the values of a setting of the unit.
func setting(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && key == name {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		t.Fatalf("%s is not set in %s", name, unitFile)
	}
	return values
}

// installed installs the Debian package of the server in a file system, $root, that has everything of this machine and
// keeps changes for itself, and then runs a script. The machine may have anything in its root: what a test adds goes to
// the file systems that are mounted here, which are empty.
func installed(t *testing.T, out, script string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test needs root: it installs a package in a file system of its own")
	}
	return strings.NewReplacer(
		"OVER", t.TempDir(),
		"PACKAGE", packageFile(t, out, "scheduler-server_*_"+thisArchitecture(t)+".deb"),
	).Replace(`
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
cp PACKAGE $root/dev/shm/package.deb
chroot $root dpkg --install /dev/shm/package.deb >&2
`) + script
}

// A systemd of its own, in namespaces, starts the installed service with everything that the unit says, reloads, restarts
// and stops it. The rest of the system is not started.
func TestServiceUnderSystemd(t *testing.T) {
	_, out := built(t)
	result := t.TempDir()
	script := installed(t, out, strings.ReplaceAll(`
mount -t sysfs -o ro sysfs $root/sys
mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs $root/run
mount -t tmpfs tmpfs $root/tmp
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
systemctl start scheduler-server
curl -fsS http://127.0.0.1:8665/readyz
systemctl show -p ActiveState,StatusText,User scheduler-server
grep -E '^(Uid|NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/$(systemctl show -P MainPID scheduler-server)/status
systemctl reload scheduler-server
curl -fsS http://127.0.0.1:8665/readyz
systemctl restart scheduler-server
systemctl show -p ActiveState scheduler-server
ls -l /var/lib
systemctl stop scheduler-server
systemctl show -p ActiveState,Result,ExecMainStatus scheduler-server
END
cat >$root/etc/systemd/system/check.service <<END
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh /run/check
ExecStopPost=systemctl exit 0
StandardOutput=append:/run/result/check
StandardError=append:/run/result/check
END
cd $root
pivot_root . run/old
umount -l /run/old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=check.service --show-status=no --log-target=null
`, "RESULT", result))
	command := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup", "--", "sh", "-euc", script)
	started := time.AfterFunc(patience, func() { _ = command.Process.Kill() }) // nothing is left to do if it has ended
	defer started.Stop()
	output, err := command.CombinedOutput()
	if err != nil {
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
		`ActiveState=inactive\n`, `Result=success\n`, `ExecMainStatus=0\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %q in the output", want)
		}
	}
	if strings.Contains(text, "curl: ") || strings.Contains(text, "Failed") {
		t.Error("a command failed")
	}
	if n := strings.Count(log, "the server is ready"); n != 2 || !strings.Contains(log, "the configuration was reloaded") {
		t.Errorf("the server was ready %d times, want 2, and was to reload its configuration", n)
	}
	if t.Failed() {
		t.Logf("the commands:\n%s\nthe log of the server:\n%s", text, log)
	}
}

func TestInstalledFiles(t *testing.T) {
	_, out := built(t)
	text := shell(t, `unshare --mount -- sh -euc "$1"`, installed(t, out, `
for f in /usr/bin/scheduler-server /etc/scheduler/server.yaml /usr/lib/systemd/system/scheduler-server.service /usr/share/doc/scheduler-server/copyright; do
	stat -c '%A %U:%G %n' $root$f
done
grep ^scheduler: $root/etc/passwd
echo '# mine' >>$root/etc/scheduler/server.yaml
chroot $root dpkg --install /dev/shm/package.deb
tail -n 1 $root/etc/scheduler/server.yaml
chroot $root dpkg --remove scheduler-server
test ! -e $root/usr/bin/scheduler-server
echo removed; grep -c ^scheduler: $root/etc/passwd; tail -n 1 $root/etc/scheduler/server.yaml
`))
	for _, want := range []string{
		`-rwxr-xr-x root:root \S*/usr/bin/scheduler-server\n`,
		`-rw-r--r-- root:root \S*/etc/scheduler/server.yaml\n`,
		`-rw-r--r-- root:root \S*/usr/lib/systemd/system/scheduler-server.service\n`,
		`scheduler:x:\d+:\d+:Scheduling server:/var/lib/scheduler:/usr/sbin/nologin\n`,
		`# mine\n`,
		`removed\n1\n# mine\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestUnitIsHardened(t *testing.T) {
	text := shell(t, "systemd-analyze security --offline=true "+unitFile)
	found := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+) `).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no exposure level in\n%s", text)
	}
	if exposure, err := strconv.ParseFloat(found[1], 64); err != nil || exposure > 2 {
		t.Errorf("exposure %s, want at most 2.0:\n%s", found[1], text)
	}
}

func TestUnitIsValid(t *testing.T) {
	_, out := built(t)
	text := shell(t, `unshare --mount -- sh -euc "$1"`, installed(t, out, `
chroot $root systemd-analyze verify --man=no scheduler-server.service >$root/dev/shm/verified 2>&1 || true
echo; echo 'verified:'
grep -F scheduler-server $root/dev/shm/verified || true
`))
	if _, complaints, ok := strings.Cut(text, "\nverified:\n"); !ok || complaints != "" {
		t.Errorf("systemd-analyze verify: %s", text)
	}
}

// The server gets by with the system calls that the unit allows.
func TestUnitAllowsTheSystemCallsOfTheServer(t *testing.T) {
	r, _ := built(t)
	allowed := map[string]bool{}
	members := func(name string) []string {
		if !strings.HasPrefix(name, "@") {
			return []string{name}
		}
		return systemCalls(t, name)
	}
	for _, filter := range setting(t, "SystemCallFilter") {
		names, remove := strings.CutPrefix(filter, "~")
		for name := range strings.FieldsSeq(names) {
			for _, call := range members(name) {
				allowed[call] = !remove
			}
		}
	}
	trace := filepath.Join(t.TempDir(), "trace")
	data := t.TempDir()
	checkReady(t, "exec strace -D --follow-forks --quiet=attach -o "+trace+" "+absolute(t, r.binary(thisArchitecture(t), "scheduler-server"))+" serve --audit-log "+filepath.Join(data, "audit.json"), "SCHEDULER_DATA_DIR="+data)
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	call := regexp.MustCompile(`^[0-9]+ +([a-z0-9_]+)\(`)
	for line := range bytes.Lines(text) {
		if found := call.FindSubmatch(line); found != nil {
			used[string(found[1])] = true
		}
	}
	if len(used) < 20 {
		t.Fatalf("strace saw only %v", used)
	}
	delete(used, "execve") // systemd calls it to start the server
	for name := range used {
		if !allowed[name] {
			t.Errorf("the unit does not allow %s", name)
		}
	}
}

// systemCalls returns the members of a group of system calls.
func systemCalls(t *testing.T, group string) []string {
	t.Helper()
	var calls []string
	scanner := bufio.NewScanner(strings.NewReader(shell(t, "systemd-analyze --no-pager syscall-filter "+group)))
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		switch {
		case line == "" || strings.HasPrefix(line, "#") || line == group:
		case strings.HasPrefix(line, "@"):
			calls = append(calls, systemCalls(t, line)...)
		default:
			calls = append(calls, line)
		}
	}
	if len(calls) == 0 {
		t.Fatalf("%s has no system calls", group)
	}
	return calls
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// There is no RPM database here to install into: the package is unpacked, and its metadata and the server are tried.
func TestRPM(t *testing.T) {
	_, out := built(t)
	architecture := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	file, err := os.Open(packageFile(t, out, "scheduler-server-*."+architecture+".rpm"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rpm, err := rpmutils.ReadRpm(file)
	if err != nil {
		t.Fatal(err)
	}
	name, err := rpm.Header.GetNEVRA()
	if err != nil {
		t.Fatal(err)
	}
	if name.Name != "scheduler-server" || name.Version != "1.2.3" || name.Arch != architecture {
		t.Errorf("the package is %v", name)
	}
	files, err := rpm.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	const noReplace, config = 1 << 4, 1 << 0
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Name())
		if f.Name() == "/etc/scheduler/server.yaml" && f.Flags()&(noReplace|config) != noReplace|config {
			t.Errorf("%s would be replaced by an upgrade", f.Name())
		}
		if f.Name() == "/usr/bin/scheduler-server" && f.Mode()&0o777 != 0o755 {
			t.Errorf("%s has the mode %o", f.Name(), f.Mode())
		}
		if f.UserName() != "root" || f.GroupName() != "root" {
			t.Errorf("%s belongs to %s:%s", f.Name(), f.UserName(), f.GroupName())
		}
	}
	for _, want := range []string{"/usr/bin/scheduler-server", "/usr/lib/systemd/system/scheduler-server.service", "/usr/lib/sysusers.d/scheduler-server.conf"} {
		if !slices.Contains(paths, want) {
			t.Errorf("no %s in %v", want, paths)
		}
	}
	const postInstall, preUninstall = 1024, 1025 // their tags
	for tag, want := range map[int]string{postInstall: "systemd-sysusers scheduler-server.conf", preUninstall: "systemctl disable --now"} {
		if script, err := rpm.Header.GetString(tag); err != nil || !strings.Contains(script, want) {
			t.Errorf("script %d: %q, %v", tag, script, err)
		}
	}
	root := t.TempDir()
	if err := rpm.ExpandPayload(root); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "usr/bin/scheduler-server"), 0o755); err != nil { // the library unpacks without modes
		t.Fatal(err)
	}
	checkReady(t, "exec chroot "+root+" "+setting(t, "ExecStart")[0])
}

func TestPackagesOfTheCommandLine(t *testing.T) {
	_, out := built(t)
	root := t.TempDir()
	shell(t, `dpkg-deb -x "$1" "$2"`, packageFile(t, out, "schedulerctl_*_"+thisArchitecture(t)+".deb"), root)
	// It also asks the server for its version, and there is none.
	text, _ := exec.Command(filepath.Join(root, "usr/bin/schedulerctl"), "version").CombinedOutput()
	if !strings.Contains(string(text), "schedulerctl 1.2.3\n") {
		t.Errorf("schedulerctl version: %s", text)
	}
}

func TestPackageVersions(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-4-gabc": "1.2.3-4-gabc", "957c45a": "0.0.0-git957c45a", "dev": "0.0.0-gitdev"} {
		if got := packageVersion(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
