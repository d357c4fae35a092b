package window

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func named(name, namespace string, spec api.MoveWindowSpec) *api.MoveWindow {
	w := &api.MoveWindow{Metadata: api.Metadata{Name: name, Namespace: namespace}, Spec: spec}
	w.SetDefaults()
	return w
}

// TestHeld checks which window holds a decision, and until when.
func TestHeld(t *testing.T) {
	end := at("2026-03-10T12:00:00Z")
	weekend := named("weekend", "", api.MoveWindowSpec{Schedule: "0 18 * * FRI", Duration: "60h"})
	nights := named("nights", "", api.MoveWindowSpec{Effect: api.EffectAllow, Schedule: "0 22 * * *", Duration: "6h"})
	noons := named("noons", "", api.MoveWindowSpec{Effect: api.EffectAllow, Schedule: "0 12 * * *", Duration: "1h"})
	freeze := named("freeze", "shop", api.MoveWindowSpec{EndsAt: &end, Description: "incident 42"})
	forever := named("forever", "", api.MoveWindowSpec{})
	berlin := named("berlin", "", api.MoveWindowSpec{Schedule: "30 2 * * *", Duration: "1h", TimeZone: "Europe/Berlin"})
	critical := named("critical", "", api.MoveWindowSpec{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"tier": "critical"}}})
	for name, c := range map[string]struct {
		windows   []*api.MoveWindow
		namespace string
		labels    map[string]string
		now       string
		by, until string
	}{
		"no windows":                      {now: "2026-03-10T10:00:00Z"},
		"before the window":               {windows: []*api.MoveWindow{weekend}, now: "2026-03-06T17:59:59Z"},
		"at its opening":                  {windows: []*api.MoveWindow{weekend}, now: "2026-03-06T18:00:00Z", by: "weekend", until: "2026-03-09T06:00:00Z"},
		"in the window":                   {windows: []*api.MoveWindow{weekend}, now: "2026-03-08T03:00:00Z", by: "weekend", until: "2026-03-09T06:00:00Z"},
		"at its end":                      {windows: []*api.MoveWindow{weekend}, now: "2026-03-09T06:00:00Z"},
		"outside of what allows":          {windows: []*api.MoveWindow{nights}, now: "2026-03-10T10:00:00Z", by: "nights", until: "2026-03-10T22:00:00Z"},
		"inside of what allows":           {windows: []*api.MoveWindow{nights}, now: "2026-03-10T23:00:00Z"},
		"outside of both":                 {windows: []*api.MoveWindow{nights, noons}, now: "2026-03-10T10:00:00Z", by: "nights", until: "2026-03-10T12:00:00Z"},
		"inside of one":                   {windows: []*api.MoveWindow{nights, noons}, now: "2026-03-10T12:30:00Z"},
		"allowed and denied":              {windows: []*api.MoveWindow{nights, weekend}, now: "2026-03-07T23:00:00Z", by: "weekend", until: "2026-03-09T22:00:00Z"},
		"a freeze":                        {windows: []*api.MoveWindow{freeze}, namespace: "shop", now: "2026-03-10T10:00:00Z", by: "freeze", until: "2026-03-10T12:00:00Z"},
		"a freeze of another namespace":   {windows: []*api.MoveWindow{freeze}, namespace: "ads", now: "2026-03-10T10:00:00Z"},
		"a freeze that is over":           {windows: []*api.MoveWindow{freeze}, namespace: "shop", now: "2026-03-10T12:00:00Z"},
		"for ever":                        {windows: []*api.MoveWindow{forever}, namespace: "shop", now: "2026-03-10T10:00:00Z", by: "forever"},
		"selected":                        {windows: []*api.MoveWindow{critical}, labels: map[string]string{"tier": "critical"}, now: "2026-03-10T10:00:00Z", by: "critical"},
		"not selected":                    {windows: []*api.MoveWindow{critical}, labels: map[string]string{"tier": "low"}, now: "2026-03-10T10:00:00Z"},
		"winter in Berlin":                {windows: []*api.MoveWindow{berlin}, now: "2026-01-10T01:45:00Z", by: "berlin", until: "2026-01-10T02:30:00Z"},
		"summer in Berlin":                {windows: []*api.MoveWindow{berlin}, now: "2026-07-10T00:45:00Z", by: "berlin", until: "2026-07-10T01:30:00Z"},
		"02:30 that Berlin does not have": {windows: []*api.MoveWindow{berlin}, now: "2026-03-29T01:15:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			hold := Compile(slices.Values(c.windows)).Held(c.namespace, c.labels, at(c.now))
			by, until := "", ""
			if hold != nil {
				by = hold.By.Name
				if !hold.Until.IsZero() {
					until = hold.Until.UTC().Format(time.RFC3339)
				}
			}
			if by != c.by || until != c.until {
				t.Errorf("held by %q until %q, want %q until %q", by, until, c.by, c.until)
			}
		})
	}
}

// TestHeldMinuteByMinute compares holds with an oracle that goes from minute to minute.
func TestHeldMinuteByMinute(t *testing.T) {
	schedules := []string{"0 * * * *", "30 6 * * *", "0 18 * * FRI", "*/20 * * * *", "15 2 * * *", "0 0 1 * *"}
	rapid.Check(t, func(t *rapid.T) {
		var all []*api.MoveWindow
		for i := range rapid.IntRange(1, 4).Draw(t, "windows") {
			spec := api.MoveWindowSpec{
				Effect:   rapid.SampledFrom([]string{api.EffectDeny, api.EffectAllow}).Draw(t, "effect"),
				Schedule: rapid.SampledFrom(schedules).Draw(t, "schedule"),
				Duration: api.Duration(fmt.Sprintf("%dm", rapid.IntRange(1, 24*60).Draw(t, "duration"))),
				TimeZone: rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York"}).Draw(t, "zone"),
			}
			if rapid.Bool().Draw(t, "ends") {
				end := at("2026-03-27T00:00:00Z").Add(time.Duration(rapid.IntRange(0, 6*24*60).Draw(t, "end")) * time.Minute)
				spec.EndsAt = &end
			}
			all = append(all, named(fmt.Sprint("w", i), "", spec))
		}
		windows := Compile(slices.Values(all))
		openings := map[*api.MoveWindow][]time.Time{}
		for _, w := range all {
			schedule, err := w.Spec.Times()
			if err != nil {
				t.Fatal(err)
			}
			for opening := schedule.Next(at("2026-03-25T00:00:00Z")); opening.Before(at("2026-05-15T00:00:00Z")); opening = schedule.Next(opening) {
				openings[w] = append(openings[w], opening)
			}
		}
		held := func(at time.Time) bool {
			denied, waits, allowed := false, false, false
			for _, w := range all {
				if w.Spec.EndsAt != nil && !at.Before(*w.Spec.EndsAt) {
					continue
				}
				// The last opening before is the one after which it stays open longest.
				later, _ := slices.BinarySearchFunc(openings[w], at.Add(1), time.Time.Compare)
				open := later > 0 && at.Before(openings[w][later-1].Add(w.Spec.Duration.Or(0)))
				denied = denied || open && w.Spec.Effect == api.EffectDeny
				waits = waits || w.Spec.Effect == api.EffectAllow
				allowed = allowed || open && w.Spec.Effect == api.EffectAllow
			}
			return denied || waits && !allowed
		}
		// Several times on the same windows, which keep their latest answer.
		for range rapid.IntRange(1, 3).Draw(t, "questions") {
			now := at("2026-03-27T00:00:00Z").Add(time.Duration(rapid.IntRange(0, 4*24*60).Draw(t, "now")) * time.Minute)
			hold := windows.Held("shop", nil, now)
			if want := held(now); (hold != nil) != want {
				t.Fatalf("held: %t, want %t", hold != nil, want)
			}
			if hold == nil {
				continue
			}
			end := now.Add(26 * time.Hour)
			if !hold.Next.IsZero() && hold.Next.Before(end) {
				end = hold.Next
			}
			for minute := now; minute.Before(end); minute = minute.Add(7 * time.Minute) {
				if !held(minute) {
					t.Fatalf("held at %s and next to be asked for at %s, but not at %s", now, hold.Next, minute)
				}
			}
			if !hold.Until.IsZero() && (held(hold.Until) || !hold.Next.Equal(hold.Until)) {
				t.Fatalf("held until %s, but also then, or asked for at %s", hold.Until, hold.Next)
			}
		}
	})
}

// Windows that follow each other for longer than anybody looks ahead have no known end, but are asked for again.
func TestHeldFurtherThanLookedAhead(t *testing.T) {
	end := at("2027-03-10T12:00:00Z")
	hourly := named("hourly", "", api.MoveWindowSpec{Schedule: "0 * * * *", Duration: "1h", EndsAt: &end})
	hold := Compile(slices.Values([]*api.MoveWindow{hourly})).Held("shop", nil, at("2026-03-10T10:20:00Z"))
	if hold == nil || !hold.Until.IsZero() || !hold.Next.After(at("2026-03-12T00:00:00Z")) {
		t.Errorf("%+v", hold)
	}
}

// BenchmarkHeld is what a window adds to each object of a list.
func BenchmarkHeld(b *testing.B) {
	windows := Compile(slices.Values([]*api.MoveWindow{
		named("weekend", "", api.MoveWindowSpec{Schedule: "0 18 * * FRI", Duration: "60h", TimeZone: "Europe/Berlin"}),
		named("nights", "shop", api.MoveWindowSpec{Effect: api.EffectAllow, Schedule: "0 22 * * *", Duration: "6h"}),
	}))
	now := at("2026-03-07T10:00:00Z")
	b.ReportAllocs()
	for b.Loop() {
		if now = now.Add(time.Microsecond); windows.Held("shop", nil, now) == nil {
			b.Fatal("nothing is held")
		}
	}
}
