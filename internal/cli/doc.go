// Package cli is the command line for people: tables in a terminal, JSON and YAML for scripts. Its
// commands are a client of the REST API like every other, and run against any server.
//
// Each command is one file. What a kind shows in a table is in columns.go.
package cli
