// Command terraform-provider-scheduler is the Terraform provider. Terraform
// starts it; it is not for the command line.
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
	err := tf6server.Serve(provider.Address, provider.NewServer(version), opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-scheduler:", err)
		os.Exit(1)
	}
}

// quietUnlessAsked turns the plugin libraries' own logging off when no TF_LOG
// variable asks for a log. They otherwise write a trace of every call, which
// Terraform reads and throws away: more than a third of the time of a plan.
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

// Terraform starts the provider for one run, in which nearly all that it allocates is
// garbage at once: memory for collecting it less often is well spent, up to a limit.
// GOGC and GOMEMLIMIT go before.
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
