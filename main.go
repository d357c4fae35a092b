// Command terraform-provider-scheduler is the Terraform provider. It is started by Terraform, not
// from the command line.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/scheduler/terraform-provider-scheduler/provider"
)

// version is set when a release is built.
var version = "dev"

func main() {
	debugged := flag.Bool("debug", false, "serve for a debugger: print how Terraform reaches this process, and stay")
	flag.Parse()
	quietUnlessAsked()
	collectRarely()
	var opts []tf6server.ServeOpt
	if *debugged {
		opts = append(opts, tf6server.WithManagedDebug())
	}
	server, end, err := traced(version, provider.NewServer(version))
	if err == nil {
		err = tf6server.Serve(provider.Address, server, opts...)
		end()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-scheduler:", err)
		os.Exit(1)
	}
}

// quietUnlessAsked disables the plugin libraries' own logging unless a TF_LOG variable is set.
// Otherwise they write a trace of every call, which Terraform reads and discards: more than a third
// of the time of a plan.
func quietUnlessAsked() {
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "TF_LOG") {
			return
		}
	}
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_SCHEDULER"} {
		if err := os.Setenv(name, "OFF"); err != nil {
			fmt.Fprintln(os.Stderr, "terraform-provider-scheduler:", err)
		}
	}
}

// Terraform starts the provider for one run, in which nearly all allocations are short-lived: up to
// a limit, memory is better spent on collecting garbage less often. GOGC and GOMEMLIMIT take
// precedence.
const (
	garbagePercent = 400
	memoryLimit    = 256 << 20
)

// collectRarely makes the garbage collector run less often than by default.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
