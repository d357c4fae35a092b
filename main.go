// Command terraform-provider-scheduler is the Terraform provider. Terraform
// starts it; it is not for the command line.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/scheduler/terraform-provider-scheduler/provider"
)

// version is set when a release is built.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger: print how Terraform reaches this process, and stay")
	flag.Parse()
	quietUnlessAsked()
	var opts []tf6server.ServeOpt
	if *debug {
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
