// Package faults tests that the server survives faults. The server is the released
// binary in a separate process, and the faults come from outside: signals, real
// file systems that are full or broken, strace that makes system calls fail,
// proxies, and clients that misbehave. After every fault, the same oracles check
// the result (oracle_test.go):
//
//   - a: every acknowledged write is stored, as its writer recorded it
//   - b: no decision violates the constraints of the spec that it answers
//   - c: versions, generations and decisions only grow, and so does the store
//   - d: one server decides; one that has lost the store writes no decision
//   - e: goroutines, open files and memory are those of a fresh server, within limits
//   - f: the decisions are those of a fresh server with the same objects
//
// make test-faults runs the short round, make test-faults ROUND=long the long
// one. They need Linux, root, strace, e2fsprogs and util-linux, and leave nothing behind: the
// tests run in a process and a mount namespace of their own. A row in which the
// fault did not happen fails.
//
//	 # | fault | how it is injected | how often, short / long | oracles | tests
//	 1 | kill -9 under writes, and during the first start | SIGKILL at random instants | 4 + 12 / 25 + 200 | a b c d e f | TestFaultKill, TestFaultKillDuringFirstStart
//	 2 | power cut | a copy of the disk under a real file system, without what nobody had synced | 1 / 10 | a b c d e f | TestFaultPowerCut
//	 3 | torn and corrupt files | bits turned over in, and pieces cut off, the log and the database: tail, middle, head, meta pages, data pages, values; check looks at each | 10 / 120 | a b c d e f | TestFaultDamage
//	 4 | disk full | a tmpfs that is filled below the reserve, then to the last byte, then made larger | 1 / 10 | a b c d e f | TestFaultDiskFull
//	 5 | out of inodes, read-only, EIO | a tmpfs with 64 inodes; ext4 that the kernel aborts; strace has fdatasync fail, also while starting | 1 + 1 + 1 + 6 / 1 + 1 + 20 + 60 | a b c d e f | TestFaultInodes, TestFaultReadOnly, TestFaultSyncFails, TestFaultErrorWhileStarting
//	 6 | slow disk | strace delays every fdatasync by 0.2 s, then by 9 s | 30 writes / 600 writes | a b c d e f | TestFaultSlowDisk
//	 7 | quota | --quota 32Mi, filled | 1 / 5 | a b c d e f | TestFaultQuota
//	 8 | second process on the data directory | a second server | 3 / 20 | a b c d e f | TestFaultSecondServer
//	 9 | SIGSTOP of the leader until another server leads | SIGSTOP and SIGCONT, two servers on one etcd; the history of etcd says who wrote | 2 / 20 | a b c d e f | TestFaultPausedLeader, TestFaultAbandonedWhilePaused, TestFaultListsOfAPausedServer
//	10 | kill -9 and SIGSTOP of an etcd member, the leader first | three members in processes of their own | 1 / 10 | a b c d e f | TestFaultEtcdMember
//	11 | partition between server and store | a proxy that refuses, stalls both ways, one way, the other way, resets, delays | 6 / 30 | a b c d e f | TestFaultPartition
//	12 | clock jumps by 1 h and 1 y to and fro, and stands still | a clock built into the server for the test (go build -overlay): nothing outside reaches the wall clock of a Go program but the clock of the machine, which is everybody's | 6 / 60 | a b c d e f | TestFaultClock
//	13 | lost watch, compaction meanwhile | a proxy breaks the connections; etcd is written to and compacted directly | 2 / 20 | a b c d e f | TestFaultLostWatch
//	14 | store put back to an older copy, or an empty one | the data directory is swapped under the server; an etcd starts again from a copy, or from nothing | 3 / 3 | a b c d e f | TestFaultOlderCopy
//	15 | metrics provider slow, hanging, broken, huge, wrong, half missing, stale | a query API with 13 ways to misbehave, beside a sound one | 13 / 130 | a b c d e f | TestFaultMetricsProvider
//	16 | metric storm | every metric changes at every reading, every second | 200 metrics, 8 s / 10000, 2 min | a b c d e f | TestFaultMetricStorm
//	17 | mass loss of clusters | a third of the clusters deleted at once, and given back | 27 x 2 / 667 x 5 | a b c d e f | TestFaultMassLoss
//	18 | corrupt requests | JSON and paths that are wrong in many ways, and sound ones with bytes changed | 334 / 20000 | a b c d e f | TestFaultCorruptRequests
//	19 | huge and slow bodies | 10 GB, bodies without an end, a byte now and then | 46 / 500 | a b c d e f | TestFaultHugeAndSlowBodies
//	20 | slow headers, handshakes and readers | headers a byte at a time, silence, half of a handshake, watchers that do not read, from 128 addresses | 300 / 3000 | a b c d e f | TestFaultSlowClients
//	21 | idle waiters, a broadcast, all come again at once | long polls from 128 addresses | 2 x 400 / 5 x 8000 | a b c d e f | TestFaultIdleWatchers
//	22 | connection flood | silent connections from 1 and from 100 addresses, to a server with ulimit -n 1024 | 2 x 3000 for 3 s / 2 x 20000 for 2 min | a b c d e f | TestFaultConnectionFlood
//	23 | token brute force, a revoked token | guesses from one address while another is served | 2400 / 160000 | a b c d e f | TestFaultTokenBruteForce
//	24 | TLS: rotated, broken, expired, not trusted, TLS 1.1, streams reset rapidly | files changed under the server; a client of its own for HTTP/2 | 3 x 2000 resets / 30 x 20000 | a b c d e f | TestFaultTLS
//	25 | leaks over churn, little memory | watches, objects and connections made and ended, with GOMEMLIMIT=48MiB; a limit of the kernel would end the process, which is row 1 | 10 s / 1 h | a b c d e f | TestFaultChurn
//	26 | panic while one object is worked on, and in a request | put into the source while the server is built (go build -overlay): no input is known that does it | 3 / 50 | a b c d e f | TestFaultPanic
//	27 | upgrade and downgrade | golden data of earlier programs, as a kill left them; a program with a higher format, built for the test | each | a b c d e f | TestFaultUpgrade
//	28 | SIGTERM under load, twice, SIGHUP with a wrong configuration | signals | 2 / 20 | a b c d e f | TestFaultTermination
//	29 | backup under load, restored elsewhere, cut off, damaged | backup while all write; bytes cut off and turned over | 2 / 15 | a b c d e f | TestFaultBackup
//	30 | Terraform cut off in the middle of an apply | a proxy that cuts answers off, once and again, or stalls; SIGKILL of the server | 4 / 40 | a b c d e f | TestFaultTerraform
//	31 | three servers on three members of etcd: the leader killed in the middle of a pass, stopped for longer than its lease, cut off from etcd both ways and one way, a follower cut off, etcd's leader killed and stopped, history compacted under a slow follower | signals, a proxy for each server and member; between them and etcd it is noted who decides in which term; others read, write, delete and preview the same few objects through all servers, and porcupine judges | 11 / 220 | a b c d e f | TestFaultSeveralServers
//	32 | clocks of three servers an hour apart, and the leader stops | a clock built into the server for the test (go build -overlay) | 1 / 20 | a b c d e f | TestFaultClocksApart
//	33 | three servers exchanged for newer ones one after the other, and back, twice, one of them with kill -9; then the upgrade is finished | the earlier program is this one with the format of the store that it had (go build -overlay) | 12 / 240 | a b c d e f | TestFaultRollingUpgrade
//	34 | three servers whose stores are the cluster: the same to the leader and to a follower, each cut off from the others by a proxy for each link; the leader of the stores killed and stopped, a follower that needs a copy of the database, a disk lost, members removed and added | as above; what is decided is noted between a server and its own store, and the log is kept short (go build -overlay) | 14 / 280 | a b c d e f | TestFaultServersAreTheCluster
//	35 | the leader paused while requests through the other servers wait for it | SIGSTOP of the leader of three servers whose stores are the cluster, and SIGCONT only after the next leader has answered | 3 / 20 | a b c d e f | TestFaultPausedLeaderIsSucceeded
//	36 | each disk of three servers whose stores are the cluster, and each pair of disks, put back to an older copy | the directories are exchanged while their servers are stopped, and the others run | 9 / 9 | a b c d e f | TestFaultOlderDisks
package faults
