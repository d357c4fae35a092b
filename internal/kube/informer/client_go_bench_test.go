package informer

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// manyPods is a source of pods that exist only as long as somebody keeps them.
type manyPods struct {
	n       int
	listed  atomic.Int64 // pods
	watches atomic.Int64
	// broken is how many watches end with an error of the network.
	broken int64
}

// pod has what most pods have: annotations, variables, volumes and a status, about 5 KiB.
func (s *manyPods) pod(i int) *corev1.Pod {
	p := podNamed(fmt.Sprintf("web-%d", i), fmt.Sprintf("node-%d", i%500))
	p.ResourceVersion = strconv.Itoa(i + 1)
	p.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat(strconv.Itoa(i%10), 2000)}
	for v := range 20 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", v), Value: fmt.Sprint("value", i)})
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("volume-", v)})
	}
	return p
}

func (s *manyPods) List(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	from, _ := strconv.Atoi(o.Continue)
	to := s.n
	if o.Limit > 0 {
		to = min(s.n, from+int(o.Limit))
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.n)}}
	for i := from; i < to; i++ {
		list.Items = append(list.Items, *s.pod(i))
	}
	if to < s.n {
		list.Continue = strconv.Itoa(to)
	}
	s.listed.Add(int64(len(list.Items)))
	return list, nil
}

// timedOut is what a watch over a network that loses everything ends with.
type timedOut struct{}

func (timedOut) Error() string   { return "i/o timeout" }
func (timedOut) Timeout() bool   { return true }
func (timedOut) Temporary() bool { return true }

var _ net.Error = timedOut{}

func (s *manyPods) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if s.watches.Add(1) <= s.broken {
		return nil, timedOut{}
	}
	events := make(chan watch.Event)
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer close(events)
		if o.SendInitialEvents != nil {
			for i := range s.n {
				select {
				case events <- watch.Event{Type: watch.Added, Object: s.pod(i)}:
				case <-ctx.Done():
					return
				}
			}
			s.listed.Add(int64(s.n))
			bookmark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.n), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
			select {
			case events <- watch.Event{Type: watch.Bookmark, Object: bookmark}:
			case <-ctx.Done():
			}
		}
		<-ctx.Done()
	}()
	return &stoppedBy{watch.NewProxyWatcher(events), stop}, nil
}

// stoppedBy is a watch that ends with a context.
type stoppedBy struct {
	*watch.ProxyWatcher
	stop context.CancelFunc
}

func (w *stoppedBy) Stop() { w.stop(); w.ProxyWatcher.Stop() }

// reduced is a store of client-go that keeps what a table does.
type reduced struct {
	cache.Store
	replaced chan struct{}
}

func (r *reduced) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		p, ok := object.(*corev1.Pod)
		if !ok {
			return object, nil
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID}}, nil
	}
}

func (r *reduced) Replace(list []any, version string) error {
	transform := r.Transformer()
	for i := range list {
		list[i], _ = transform(list[i]) // never fails
	}
	err := r.Store.Replace(list, version)
	r.replaced <- struct{}{}
	return err
}

// gates are the features of client-go, all but one as they are.
type gates struct {
	features.Gates
	watchList bool
}

func (g gates) Enabled(f features.Feature) bool {
	if f == features.WatchListClient {
		return g.watchList
	}
	return g.Gates.Enabled(f)
}

// BenchmarkPods reads the pods of a cluster once, as this package and as client-go does it. peak-MiB is the most memory
// that is in use meanwhile, and listed/op how many pods are read when the network fails twice after the list.
func BenchmarkPods(b *testing.B) {
	const pods = 30_000
	own := func(ctx context.Context, s *manyPods) {
		table := NewTable(PodOf, samePod)
		gate := newGate(semaphore.NewWeighted(ListsAtOnce))
		gate.presume()
		r := &Reflector[Pod]{table: table, source: sourceOf(s, ""), gate: gate, changed: func() {}, object: "pods"}
		go r.Run(ctx)
		for s.watches.Load() <= s.broken {
			time.Sleep(time.Millisecond) //nolint:forbidigo // a benchmark
		}
	}
	clientGo := func(watchList bool) func(ctx context.Context, s *manyPods) {
		return func(ctx context.Context, s *manyPods) {
			defer features.ReplaceFeatureGates(features.FeatureGates())
			features.ReplaceFeatureGates(gates{features.FeatureGates(), watchList})
			store := &reduced{cache.NewStore(cache.MetaNamespaceKeyFunc), make(chan struct{}, 10)}
			lw := &cache.ListWatch{
				ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return s.List(ctx, o) },
				WatchFuncWithContext: s.Watch,
			}
			r := cache.NewReflectorWithOptions(lw, &corev1.Pod{}, store, cache.ReflectorOptions{})
			go r.RunWithContext(klog.NewContext(ctx, logr.Discard()))
			<-store.replaced
			for s.watches.Load() <= s.broken {
				time.Sleep(time.Millisecond) //nolint:forbidigo // a benchmark
			}
		}
	}
	for _, c := range []struct {
		name string
		read func(ctx context.Context, s *manyPods)
	}{{"own", own}, {"client-go", clientGo(false)}, {"client-go with watch list", clientGo(true)}} {
		for _, broken := range []int64{0, 2} {
			b.Run(fmt.Sprintf("%s/%d breaks", c.name, broken), func(b *testing.B) {
				defer debug.SetGCPercent(debug.SetGCPercent(10))
				b.ReportAllocs()
				peak, listed := uint64(0), int64(0)
				for b.Loop() {
					s := &manyPods{n: pods, broken: broken}
					ctx, stop := context.WithCancel(b.Context())
					done := make(chan struct{})
					go func() {
						defer close(done)
						peak = max(peak, mostInUse(ctx))
					}()
					c.read(ctx, s)
					stop()
					<-done
					listed += s.listed.Load()
				}
				b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
				b.ReportMetric(float64(listed)/float64(b.N), "listed/op")
			})
		}
	}
}

// mostInUse returns the most memory that objects take until ctx is done.
func mostInUse(ctx context.Context) (most uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for ctx.Err() == nil {
		metrics.Read(sample)
		most = max(most, sample[0].Value.Uint64())
		time.Sleep(time.Millisecond) //nolint:forbidigo // a sample
	}
	return most
}
