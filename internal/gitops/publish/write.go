package publish

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops/slicing"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/hub"
)

// maxRounds is more than a decision needs.
const maxRounds = 8

// write makes the objects of a decision equal to it, beginning with what is in the hub now. Each
// write is refused if an object is not as it was read.
func (p *Publisher) write(ctx context.Context, t target) error {
	p.mu.Lock()
	there := p.there[t.placement.Namespace]
	p.mu.Unlock()
	parts, known := p.decision(t)
	if !known || !there {
		return nil
	}
	w := &writer{publisher: p, format: formats[t.api], target: t}
	w.client = p.link.Client().Resource(w.format.resource).Namespace(t.placement.Namespace)
	err := w.read(ctx)
	for range maxRounds {
		if err != nil {
			break
		}
		steps := slicing.Steps(w.present(), parts)
		if len(steps) == 0 {
			return nil
		}
		for _, step := range steps {
			if err = w.step(ctx, step); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = errors.New("somebody else changes its objects at the same time")
	}
	if ctx.Err() == nil {
		p.figures.count(t.api, "failed")
	}
	return err
}

// failed logs the first of several failures.
func (p *Publisher) failed(t target, err error) {
	p.options.Logger.Warn("a decision could not be written to the Kubernetes hub; it is tried again", "placement", t.placement.String(), "api", string(t.api), "error", err.Error())
}

// writer writes the objects of one decision.
type writer struct {
	publisher *Publisher
	target    target
	format    *format
	client    dynamic.ResourceInterface
	objects   map[int]*unstructured.Unstructured
}

// read reads the objects that are in the hub.
func (w *writer) read(ctx context.Context) error {
	ctx, cancel := hub.Within(ctx)
	defer cancel()
	list, err := w.client.List(ctx, metav1.ListOptions{LabelSelector: w.publisher.selector() + "," + gitops.PlacementLabel + "=" + w.target.placement.Name})
	if err != nil {
		return describe("list", w.format.resource.Resource, err)
	}
	w.objects = map[int]*unstructured.Unstructured{}
	for i := range list.Items {
		if o, ok := w.format.read(&list.Items[i]); ok {
			w.objects[o.Number] = &list.Items[i]
		}
	}
	return nil
}

func (w *writer) present() []slicing.Slice {
	var present []slicing.Slice
	for _, u := range w.objects {
		if o, ok := w.format.read(u); ok {
			present = append(present, o.Slice)
		}
	}
	return present
}

// step makes one step, and remembers what is in the hub then.
func (w *writer) step(ctx context.Context, step slicing.Step) error {
	name := nameOf(w.target.placement.Name, step.Number)
	var err error
	verb, result := "write", "written"
	switch step.Verb {
	case slicing.Delete:
		verb, result = "delete", "deleted"
		err = w.remove(ctx, w.objects[step.Number])
		if apierrors.IsNotFound(err) {
			err = nil
		}
		if err == nil {
			delete(w.objects, step.Number)
		}
	case slicing.Create:
		verb, result = "create", "created"
		err = w.create(ctx, name, &step.Slice)
	case slicing.Write:
		err = w.update(ctx, &step.Slice)
	}
	if err != nil {
		return describe(verb, name, err)
	}
	w.publisher.figures.count(w.target.api, result)
	return nil
}

func (w *writer) remove(ctx context.Context, u *unstructured.Unstructured) error {
	ctx, cancel := hub.Within(ctx)
	defer cancel()
	uid, version := u.GetUID(), u.GetResourceVersion()
	return w.client.Delete(ctx, u.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
}

// create makes an object. If its clusters are in the status, it is labeled only when they are
// there: without them, it would be a decision for nowhere for a moment.
func (w *writer) create(ctx context.Context, name string, s *slicing.Slice) error {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(w.format.resource.GroupVersion().String())
	u.SetKind("PlacementDecision")
	u.SetNamespace(w.target.placement.Namespace)
	u.SetName(name)
	label(u, map[string]string{managedByLabel: managedBy, storeLabel: w.publisher.options.Store, gitops.PlacementLabel: w.target.placement.Name})
	label(u, w.format.group(w.target.placement.Name, s))
	if !w.format.status {
		label(u, w.format.show(w.target.placement.Name, s))
		if err := w.format.put(u, s.Clusters); err != nil {
			return err
		}
	}
	if err := w.send(ctx, s.Number, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return w.client.Create(ctx, u, metav1.CreateOptions{FieldManager: hub.FieldManager})
	}); err != nil || !w.format.status {
		return err
	}
	return w.update(ctx, s)
}

// update writes the clusters of an object, and then makes them visible if they are not.
func (w *writer) update(ctx context.Context, s *slicing.Slice) error {
	u := w.objects[s.Number].DeepCopy()
	if err := w.format.put(u, s.Clusters); err != nil {
		return err
	}
	options := metav1.UpdateOptions{FieldManager: hub.FieldManager}
	if !w.format.status {
		label(u, w.format.show(w.target.placement.Name, s))
		return w.send(ctx, s.Number, func(ctx context.Context) (*unstructured.Unstructured, error) { return w.client.Update(ctx, u, options) })
	}
	before, _ := w.format.read(w.objects[s.Number])
	if err := w.send(ctx, s.Number, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return w.client.UpdateStatus(ctx, u, options)
	}); err != nil || !before.Hidden {
		return err
	}
	u = w.objects[s.Number].DeepCopy()
	label(u, w.format.show(w.target.placement.Name, s))
	return w.send(ctx, s.Number, func(ctx context.Context) (*unstructured.Unstructured, error) { return w.client.Update(ctx, u, options) })
}

// send makes a request, and remembers the object that it returns.
func (w *writer) send(ctx context.Context, number int, request func(context.Context) (*unstructured.Unstructured, error)) error {
	ctx, cancel := hub.Within(ctx)
	defer cancel()
	u, err := request(ctx)
	if err == nil {
		w.objects[number] = u
	}
	return err
}

// describe says what could not be done.
func describe(verb, name string, err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s %s: there is a PlacementDecision of this name that this store has not made: delete it, or rename the placement", verb, name)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s %s: it was changed in the meantime (409)", verb, name)
	}
	return hub.Describe(verb, name, err)
}
