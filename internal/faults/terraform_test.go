//go:build faults

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// terraformGroup is the group of the clusters that Terraform creates, and the prefix of their names.
const terraformGroup = "tf"

const configuration = `
terraform {
  required_providers {
    scheduler = { source = "scheduler/scheduler" }
  }
}
variable "generation" { type = number }
provider "scheduler" {
  request_timeout = "3m" # eventually.Limit: no fault here lasts until then
}
resource "scheduler_cluster" "tf" {
  count  = 3
  name   = "tf-${count.index}"
  labels = { group = "tf" }
}
resource "scheduler_placement" "tf" {
  count              = 6
  name               = "tf-${count.index}"
  namespace          = "terraform"
  number_of_clusters = 1
  labels             = { generation = tostring(var.generation) }
  label_constraints  = ["group is tf"]
  depends_on         = [scheduler_cluster.tf]
}
`

// terraform is Terraform with the provider in this repository.
type terraform struct {
	t           testing.TB
	binary, dir string
	environment []string
}

func newTerraform(t testing.TB, endpoint string) *terraform {
	t.Helper()
	f := &terraform{t: t, dir: t.TempDir()}
	var err error
	if f.binary, err = exec.LookPath("terraform"); err != nil {
		t.Fatalf("%v: make terraform builds it", err)
	}
	if _, err := build("terraform-provider-scheduler", "../..", nil); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.tf":      configuration,
		"terraform.rc": fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"scheduler/scheduler\" = %q\n  }\n  direct {}\n}\n", buildDir),
	} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.environment = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(f.dir, "terraform.rc"),
		"CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "SCHEDULER_ENDPOINT=http://"+endpoint)
	return f
}

func (f *terraform) run(args ...string) (output string, code int) {
	f.t.Helper()
	cmd := exec.Command(f.binary, append(args, "-no-color")...)
	cmd.Dir, cmd.Env = f.dir, f.environment
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		f.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestFaultTerraform disconnects Terraform from the server during applies: between a write and its response, for a
// while, and by killing the server. The next apply, at the latest, ends in the same state as one without faults.
func TestFaultTerraform(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 30)
	w := newWorld(t, f, undisturbed(dataDir(t))...)
	x := startProxy(t, w.p().address())
	tf := newTerraform(t, x.address())
	generation := 0
	apply := func() (string, int) {
		return tf.run("apply", "-auto-approve", "-input=false", "-var", fmt.Sprintf("generation=%d", generation))
	}
	var held, cut int64 // before the fault
	isHeld := func() bool { now, _ := x.counts(); return now > held }
	isCut := func() bool { _, now := x.counts(); return now > cut }
	// during runs beside the apply, and reports whether the fault hit it. What it waits for is seen in the proxy: how
	// long Terraform takes until it connects depends on the machine. done is closed when the apply has ended.
	// Each fault begins after a number of answers. An apply gets more of them: it writes or reads nine objects, at least.
	faults := []struct {
		name   string
		before func()
		during func(done <-chan struct{}) bool
	}{
		{"answers cut off", func() { x.cutNext(4) }, func(done <-chan struct{}) bool { return sees(done, isCut) }},
		{"answers cut off repeatedly", func() { x.cutNext(1) }, func(done <-chan struct{}) bool {
			hit := false
			for sees(done, isCut) {
				hit = true
				select {
				case <-done:
					return true
				case <-time.After(time.Duration(100+w.random.IntN(200)) * time.Millisecond): // some answers arrive
				}
				_, cut = x.counts()
				x.cutNext(1)
			}
			return hit
		}},
		{"no answers for a while", func() { x.set(fine, stalled) }, func(done <-chan struct{}) bool {
			hit := sees(done, isHeld)
			select {
			case <-done:
			case <-time.After(3 * time.Second): // from the first answer that is held: for this long, none arrives
			}
			x.set(fine, fine)
			return hit
		}},
		{"the server dies", func() { x.set(fine, stalled) }, func(done <-chan struct{}) bool {
			hit := sees(done, isHeld) // Terraform waits for an answer
			w.p().kill()
			x.reset(false)
			x.set(fine, fine)
			w.start()
			x.lead(w.p().address())
			return hit
		}},
	}
	for range rounds(1, 10) {
		for _, fault := range faults {
			generation++
			done := make(chan struct{})
			var meddling sync.WaitGroup
			hit := false
			held, cut = x.counts()
			x.skipNext(1 + w.random.IntN(8))
			fault.before()
			meddling.Go(func() { hit = fault.during(done) })
			out, code := apply()
			close(done)
			meddling.Wait()
			x.set(fine, fine)
			x.cutNext(0)
			x.skipNext(0)
			if !hit {
				t.Errorf("%s: the fault had no effect", fault.name)
			} else {
				f.happened()
			}
			if code != 0 {
				t.Logf("%s: the apply failed:\n%.1500s", fault.name, out)
				if out, code = apply(); code != 0 {
					t.Errorf("%s: the next apply failed, too:\n%s", fault.name, out)
				}
			}
			if out, code := tf.run("plan", "-detailed-exitcode", "-input=false", "-var", fmt.Sprintf("generation=%d", generation)); code != 0 {
				t.Errorf("%s: the plan afterwards exited with %d:\n%s", fault.name, code, out)
			}
			tf.checkState(w, fault.name, generation)
		}
	}
	if out, code := tf.run("destroy", "-auto-approve", "-input=false", "-var", "generation=0"); code != 0 {
		t.Fatalf("destroy: %s", out)
	}
	w.judge()
}

// sees waits until a condition holds, and reports whether it did before done was closed.
func sees(done <-chan struct{}, holds func() bool) bool {
	limit := time.After(eventually.Limit)
	for !holds() {
		select {
		case <-done:
			return holds()
		case <-limit:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// checkState compares Terraform's state with the server's objects.
func (f *terraform) checkState(w *world, name string, generation int) {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, "terraform.tfstate"))
	if err != nil {
		f.t.Fatal(err)
	}
	var state struct {
		Resources []struct {
			Instances []struct {
				Status     string `json:"status"`
				Deposed    string `json:"deposed"`
				Attributes struct {
					Name string `json:"name"`
				} `json:"attributes"`
			} `json:"instances"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		f.t.Fatal(err)
	}
	known := 0
	for _, r := range state.Resources {
		for _, i := range r.Instances {
			known++
			if i.Status != "" || i.Deposed != "" {
				f.t.Errorf("%s: %s is %s%s in the state", name, i.Attributes.Name, i.Status, i.Deposed)
			}
		}
	}
	there, err := objects(w.p())
	if err != nil {
		f.t.Fatal(err)
	}
	has := 0
	for key, object := range there {
		if !strings.HasPrefix(key.Name, "tf-") {
			continue
		}
		has++
		if key.Kind == api.KindPlacement && object.Meta().Labels["generation"] != fmt.Sprint(generation) {
			f.t.Errorf("%s: %s has the labels %v, want generation %d", name, key, object.Meta().Labels, generation)
		}
	}
	if known != 9 || has != 9 {
		f.t.Errorf("%s: Terraform knows %d objects, and the server has %d, want 9", name, known, has)
	}
}
