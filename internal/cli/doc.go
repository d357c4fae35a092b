// Package cli implements schedulerctl, the command line for people: tables in a terminal, JSON for
// scripts. It is a client of the REST API like every other, and runs against any server.
//
// It is a program of its own because it runs on laptops and in CI jobs: it links neither etcd nor
// client-go, so that it is a fifth of the server's size, and it cannot start or damage a server.
//
// Each command is one file. What a kind shows in a table is in columns.go.
package cli
