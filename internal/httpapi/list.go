package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fieldselector"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// maxRounds limits the work for one page whose selectors match few objects: it is how many times the
// limit of the page are read. The page is then shorter than its limit, and the list continues.
const maxRounds = 20

type listInput struct {
	Target        operation.Target
	Limit         int64  `query:"limit" minimum:"1" doc:"Largest number of objects to return: default and maximum 5000. If there are more, continue in the response leads to the next page; with selectors that match few objects, a page may have fewer than that."`
	Continue      string `query:"continue" doc:"The continue token of the previous page. All pages show the objects at the same revision. 410 means that it is no longer available."`
	LabelSelector string `query:"label_selector" doc:"Only objects whose labels match, in Kubernetes syntax: tier=prod,region in (eu, us),!legacy."`
	FieldSelector string `query:"field_selector" maxLength:"1000" doc:"Only objects whose fields have, or with != do not have, these values: spec.region=eu,status.state!=online. A field in a list has the values of all elements: status.clusters=eu-1. The type of a condition stands for its status: status.conditions.Ready=False. Fields that the token may not see count as they are shown. A backslash precedes a comma, an equals sign or a backslash in a value."`
	Fields        string `query:"fields" doc:"Only these fields of each object, separated by commas: metadata.name,status.state. If omitted, all."`
	All           bool   `query:"all" doc:"On the global collection of a kind that can also be namespaced: include the objects of all namespaces."`
}

type listOutput struct {
	Body any // *api.List[api.Object], or *page, which writes one
}

// pageToken is where a list continues. It contains the parameters of the list, so that it cannot be
// used for another one by mistake.
type pageToken struct {
	Revision   int64    `json:"r"`
	After      string   `json:"a"`
	Kind       api.Kind `json:"k"`
	Namespace  string   `json:"n,omitempty"`
	Labels     string   `json:"s,omitempty"`
	Fields     string   `json:"f,omitempty"`
	Everywhere bool     `json:"e,omitempty"`
}

func (t pageToken) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		return "" // strings and numbers can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// query is a validated list request.
type query struct {
	pageToken
	labels labels.Selector
	fields fieldselector.Selector
	who    auth.Identity
}

// belongs reports whether an object belongs to the list, apart from the selectors.
func (o *objects) belongs(q *query, object api.Object) bool {
	return (q.Everywhere || api.KeyOf(object).Namespace == q.Namespace) && o.rights.Reads(q.who, object)
}

// selected returns an object as the reader sees it, nil if a selector leaves it out. Fields are compared
// as they are shown: otherwise values that are withheld could be guessed one after the other.
func (o *objects) selected(q *query, object api.Object) api.Object {
	if !q.labels.Matches(labels.Set(object.Meta().Labels)) {
		return nil
	}
	shown := o.view.shown(q.who, object)
	if !q.fields.Matches(shown) {
		return nil
	}
	return shown
}

func (o *objects) list(ctx context.Context, info api.KindInfo, in *listInput) (*listOutput, error) {
	who := auth.Of(ctx)
	if err := o.rights.MayReadKey(who, in.Target.Key(info.Kind)); err != nil {
		return nil, err
	}
	selector, err := parseSelector(in.LabelSelector)
	if err != nil {
		return nil, err
	}
	byFields, err := fieldselector.Parse(in.FieldSelector, info)
	if err != nil {
		return nil, problem.Invalid("field_selector", "%s", err)
	}
	fields, err := parseProjection(in.Fields, info)
	if err != nil {
		return nil, err
	}
	limit := int64(operation.MaxPage)
	if in.Limit > 0 {
		limit = min(in.Limit, operation.MaxPage)
	}
	everywhere := in.Target.Namespace == "" && (info.Scope == api.Namespaced || info.Scope == api.OfCluster || in.All)
	q := &query{
		pageToken{Kind: info.Kind, Namespace: in.Target.Namespace, Labels: in.LabelSelector, Fields: in.FieldSelector, Everywhere: everywhere},
		selector, byFields, who,
	}
	if in.Continue != "" {
		if err := q.resume(in.Continue); err != nil {
			return nil, err
		}
	}
	if shown := o.listed.at(q.Revision, o.fleet.Snapshot()); shown != nil {
		q.Revision = shown.Revision()
		return &listOutput{&page{o, ctx, q, shown, int(limit), fields}}, nil
	}
	list, err := o.listStore(ctx, q, int(limit))
	if err != nil {
		return nil, err
	}
	body, err := fields.list(list)
	if err != nil {
		return nil, err
	}
	return &listOutput{body}, nil
}

func parseSelector(text string) (labels.Selector, error) {
	// The parser would treat U+0000 as the end of the text and ignore the rest.
	if strings.ContainsRune(text, 0) {
		return nil, problem.Invalid("label_selector", "must not contain the character U+0000")
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, problem.Invalid("label_selector", "%s", err)
	}
	return selector, nil
}

// resume reads the position from a token, if it belongs to this list.
func (q *query) resume(text string) error {
	var token pageToken
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &token)
	}
	if err != nil || token.Revision <= 0 || token.After == "" {
		return problem.New(api.ProblemBadContinue, "continue: not a token of this server")
	}
	want := q.pageToken
	want.Revision, want.After = token.Revision, token.After
	if token != want {
		return problem.New(api.ProblemBadContinue, "continue: the token is of another list: keep the path, label_selector, field_selector and all as they were")
	}
	q.pageToken = token
	return nil
}

// damagedIn names the objects that belong to a list, as far as known, and cannot be shown.
func (o *objects) damagedIn(q *query, snapshot *fleet.Snapshot) []api.DamagedObject {
	var list []api.DamagedObject
	for _, d := range snapshot.AllDamaged() {
		if d.Key.Kind == q.Kind && (q.Everywhere || d.Key.Namespace == q.Namespace) && o.rights.MayReadKey(q.who, d.Key) == nil && q.who.SeesDamaged(d.Key) {
			list = append(list, api.DamagedObject{Kind: d.Key.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name})
		}
	}
	return list
}

// listStore answers one page of a list that began elsewhere, or a while ago, as it was
// at the token's revision.
func (o *objects) listStore(ctx context.Context, q *query, limit int) (*api.List[api.Object], error) {
	list := &api.List[api.Object]{Items: []api.Object{}}
	for range maxRounds {
		records, statuses, next, revision, err := o.store.Page(ctx, q.Kind, q.Namespace, q.After, limit-len(list.Items), q.Revision)
		if err != nil {
			return nil, err
		}
		q.Revision, q.After = revision, next
		for _, record := range records {
			status, hasStatus := statuses[record.Key]
			if record.Damage != nil || status.Damage != nil {
				continue // listed below
			}
			object, err := o.codec.DecodeSpec(q.Kind, record.Value)
			if errors.Is(err, store.ErrDamaged) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("decode %s: %w", record.Key, err)
			}
			if !o.belongs(q, object) {
				continue
			}
			newest := record.ModRevision
			if hasStatus {
				if o.codec.DecodeStatus(object, status.Value) != nil {
					continue // damaged for any reason
				}
				newest = max(newest, status.ModRevision)
			}
			object.Meta().ResourceVersion = strconv.FormatInt(newest, 10)
			if shown := o.selected(q, object); shown != nil {
				list.Items = append(list.Items, shown)
			}
		}
		if next == "" || len(list.Items) == limit {
			break
		}
	}
	list.ResourceVersion = strconv.FormatInt(q.Revision, 10)
	list.Damaged = o.damagedIn(q, o.fleet.Snapshot())
	if q.After != "" {
		list.Continue = q.String()
	}
	return list, nil
}
