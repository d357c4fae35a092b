package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/jsonform"
)

// PutOptions are the options of a Put.
type PutOptions struct {
	// Create makes the write fail with 412 if the object exists.
	Create bool
	// IfMatch makes the write fail with 412 if the user's part of the object has changed since this
	// resource_version. "" = any.
	IfMatch string
	// PreviewToken makes the write commit exactly the decision of this preview, and fail with 412
	// if that is not possible. The server ignores it if nothing changes. "" = none.
	PreviewToken string
	// TakeAway are the fields of the secrets that the server should remove. Other secrets that the
	// object does not have are kept. A map means all its entries.
	TakeAway []string
	// LeaveOut are fields that are not sent: "spec.a.*.b", where "*" is every element of a list or
	// map. The server does not know them.
	LeaveOut []string
	// CarryOver keeps the fields that only the server knows: they are read first.
	CarryOver bool
	// Wait is how long the server delays the response until the resulting decision is made. nil =
	// the server's default, 0 = not at all.
	Wait *time.Duration
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, key api.Key) (api.Object, error) {
	return c.getObject(ctx, key, nil, 0)
}

// GetNewer waits up to wait until the object is newer than a resource_version, and returns the
// current object.
func (c *Client) GetNewer(ctx context.Context, key api.Key, resourceVersion string, wait time.Duration) (api.Object, error) {
	object, err := c.getObject(ctx, key, url.Values{"resource_version": {resourceVersion}, "wait": {wait.String()}}, wait)
	if StatusOf(err) == http.StatusNotModified {
		return c.Get(ctx, key)
	}
	return object, err
}

func (c *Client) getObject(ctx context.Context, key api.Key, query url.Values, wait time.Duration) (api.Object, error) {
	object, err := newObject(key.Kind)
	if err != nil {
		return nil, err
	}
	q := &call{method: http.MethodGet, path: key.URLPath(), query: query, wait: wait, repeatable: true}
	if err := c.read(ctx, q, object); err != nil {
		return nil, err
	}
	return object, nil
}

// Put creates or replaces an object and returns it as it is after the wait. It also succeeds if an
// attempt whose connection broke has written the object.
func (c *Client) Put(ctx context.Context, object api.Object, opts PutOptions) (api.Object, error) {
	key := api.KeyOf(object)
	body, err := encode(object, opts.TakeAway)
	if err != nil {
		return nil, err
	}
	if len(opts.LeaveOut) > 0 || opts.CarryOver {
		if body, err = c.adapt(ctx, object, body, opts); err != nil {
			return nil, err
		}
	}
	stored, err := newObject(key.Kind)
	if err != nil {
		return nil, err
	}
	q := &call{method: http.MethodPut, path: key.URLPath(), body: body, header: http.Header{}, wait: serverWait, repeatable: true}
	if opts.Create {
		q.header.Set("If-None-Match", "*")
	}
	if opts.IfMatch != "" {
		q.header.Set("If-Match", strconv.Quote(opts.IfMatch))
	}
	if opts.PreviewToken != "" {
		q.header.Set(api.PreviewTokenHeader, opts.PreviewToken)
	}
	if opts.Wait != nil {
		q.wait = *opts.Wait
		q.query = url.Values{"wait": {opts.Wait.String()}}
	}
	err = c.read(ctx, q, stored)
	if StatusOf(err) == http.StatusPreconditionFailed && q.attempts.uncertain {
		// An earlier attempt broke off after the server had written the object: the condition
		// failed because of our own write.
		if present, ok := c.Written(ctx, object); ok {
			return present, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// Written reads an object and reports whether the server has it as it was sent, as far as the
// server shows it. It resolves whether a Put without a response succeeded.
func (c *Client) Written(ctx context.Context, object api.Object) (api.Object, bool) {
	present, err := c.Get(ctx, api.KeyOf(object))
	if err != nil || !sameVisibleIntent(present, object) {
		return nil, false
	}
	return present, true
}

// sameVisibleIntent compares what the server shows of an object with what was sent. Secrets are
// never shown, and those that were not sent are kept.
func sameVisibleIntent(shown, sent api.Object) bool {
	var objects [2]api.Object
	for i, o := range []api.Object{shown, sent} {
		data, err := json.Marshal(o)
		if err != nil {
			return false
		}
		if objects[i], err = decodeObject(data); err != nil {
			return false
		}
		objects[i].SetDefaults()
		for field := range objects[i].Secrets() {
			objects[i].SetSecret(field, api.Secret{})
		}
	}
	return api.SameIntent(objects[0], objects[1])
}

// Delete deletes an object. It returns a 404 *api.Problem if the object does not exist, unless an
// attempt of this call whose connection broke deleted it.
func (c *Client) Delete(ctx context.Context, key api.Key) error {
	q := &call{method: http.MethodDelete, path: key.URLPath(), wait: serverWait, repeatable: true}
	err := c.read(ctx, q, nil)
	if IsNotFound(err) && q.attempts.uncertain {
		return nil
	}
	return err
}

// ListOptions select the objects of a list.
type ListOptions struct {
	// Namespace limits the list to a namespace or, for a kind whose objects belong to a cluster, to
	// that cluster. "" = all, including global objects.
	Namespace string
	// LabelSelector limits the list, in the server's selector syntax. "" = no limit.
	LabelSelector string
	// FieldSelector limits the list by the values of fields. "" = no limit.
	FieldSelector string
	// PageSize is how many objects one request fetches. 0 = the server's default.
	PageSize int
}

// List yields the objects of a kind in key order, at a single revision, fetching page by page. An
// error ends the sequence.
func (c *Client) List(ctx context.Context, kind api.Kind, opts ListOptions) iter.Seq2[api.Object, error] {
	query := url.Values{}
	if opts.PageSize > 0 {
		query.Set("limit", strconv.Itoa(opts.PageSize))
	}
	if opts.LabelSelector != "" {
		query.Set("label_selector", opts.LabelSelector)
	}
	if opts.FieldSelector != "" {
		query.Set("field_selector", opts.FieldSelector)
	}
	if info, ok := api.LookupKind(kind); ok && info.Scope == api.GlobalOrNamespaced && opts.Namespace == "" {
		query.Set("all", "true")
	}
	return func(yield func(api.Object, error) bool) {
		query := maps.Clone(query)
		for {
			var page struct {
				Items    []json.RawMessage `json:"items"`
				Continue string            `json:"continue"`
			}
			q := &call{method: http.MethodGet, path: api.CollectionPath(kind, opts.Namespace), query: query, repeatable: true}
			if err := c.read(ctx, q, &page); err != nil {
				yield(nil, err)
				return
			}
			for _, item := range page.Items {
				object, err := decodeKind(kind, item)
				if !yield(object, err) || err != nil {
					return
				}
			}
			if page.Continue == "" {
				return
			}
			query.Set("continue", page.Continue)
		}
	}
}

func newObject(kind api.Kind) (api.Object, error) {
	info, ok := api.LookupKind(kind)
	if !ok {
		return nil, fmt.Errorf("%q is not a kind of object", kind)
	}
	return info.New(), nil
}

func decodeKind(kind api.Kind, data []byte) (api.Object, error) {
	object, err := newObject(kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, object); err != nil {
		return nil, fmt.Errorf("the server sent a %s that cannot be read: %w", kind, err)
	}
	return object, nil
}

// decodeObject decodes an object of any kind. Unlike api.Decode it ignores unknown fields, so that
// it works with newer servers.
func decodeObject(data []byte) (api.Object, error) {
	var head struct {
		Kind api.Kind `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("the server sent an object that cannot be read: %w", err)
	}
	return decodeKind(head.Kind, data)
}

// Encode returns an object as JSON for a write: with its kind, even if the field is not set, and
// with the secrets, which are otherwise left out of JSON. A withheld secret is null: the server
// keeps the one it has.
func Encode(object api.Object) ([]byte, error) { return encode(object, nil) }

func encode(object api.Object, takeAway []string) ([]byte, error) {
	if len(object.Secrets()) == 0 && len(takeAway) == 0 { // mostly
		body, err := jsonform.Marshal(document{object.ObjectKind(), object.Meta(), object.SpecPart()})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", api.KeyOf(object), err)
		}
		return body, nil
	}
	return encodeSecrets(object, takeAway)
}

// document is what is sent of an object: all but its status.
type document struct {
	Kind     api.Kind      `json:"kind"`
	Metadata *api.Metadata `json:"metadata"`
	Spec     any           `json:"spec"`
}

func encodeSecrets(object api.Object, takeAway []string) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", api.KeyOf(object), err)
	}
	decoded, err := api.DecodeDocument(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", api.KeyOf(object), err)
	}
	document, ok := decoded.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: its JSON is not an object", api.KeyOf(object))
	}
	delete(document, "status")
	document["kind"] = object.ObjectKind()
	for field, secret := range object.Secrets() {
		if secret.Withheld() {
			continue
		}
		if err := setField(document, api.SplitField(field), secret.Reveal()); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", api.KeyOf(object), field, err)
		}
	}
	for _, field := range takeAway {
		var none any = ""
		if slices.Contains(api.SecretFields(object.ObjectKind()), api.SecretField{Field: field, Map: true}) {
			none = map[string]any{}
		}
		if err := setField(document, api.SplitField(field), none); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", api.KeyOf(object), field, err)
		}
	}
	return json.Marshal(document)
}

// setField sets a value in a document. Its parents must exist.
func setField(document map[string]any, steps []any, value any) error {
	for i, step := range steps {
		name, ok := step.(string)
		if !ok {
			return errors.New("secrets in lists are not supported")
		}
		if i == len(steps)-1 {
			document[name] = value
			return nil
		}
		inner, ok := document[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			document[name] = inner
		}
		document = inner
	}
	return nil
}
