package movement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/timezone"
)

// changesOfTime are time zones with a time about a change to daylight saving time, back, or of the
// zone itself.
var changesOfTime = []struct{ zone, at string }{
	{"Europe/Berlin", "2026-03-29T01:00:00Z"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"America/New_York", "2026-03-08T07:00:00Z"},
	{"America/New_York", "2026-11-01T06:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"}, // by half an hour
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"}, // at midnight
	{"America/Sao_Paulo", "2018-02-18T02:00:00Z"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"}, // for Ramadan
	{"Africa/Casablanca", "2026-03-22T02:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"}, // a day that does not exist
}

// oracle is a naive window: it walks every minute, and knows what a clock on the wall showed.
type oracle struct {
	minutes, hours, days, months, weekdays []int // nil: any
	duration                               int   // minutes
	zone                                   *time.Location
}

func (o *oracle) matches(year, month, day, hour, minute int) bool {
	in := func(list []int, n int) bool { return list == nil || slices.Contains(list, n) }
	weekday := int(time.Date(year, time.Month(month), day, 12, 0, 0, 0, time.UTC).Weekday())
	date := in(o.days, day) && in(o.weekdays, weekday)
	if o.days != nil && o.weekdays != nil {
		date = in(o.days, day) || in(o.weekdays, weekday) // as cron does
	}
	return in(o.minutes, minute) && in(o.hours, hour) && in(o.months, month) && date
}

// open walks every minute and returns those in which the window is open. Openings before the first
// minute count if they are walked, too.
func (o *oracle) open(from time.Time, minutes int) []bool {
	wall := func(t time.Time) time.Time {
		l := t.In(o.zone)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	opened := make([]bool, minutes)
	shown := map[int64]bool{} // on the wall
	before := wall(from.Add(-time.Minute))
	for i := range opened {
		now := wall(from.Add(time.Duration(i) * time.Minute))
		// Minutes that the clock skipped start now.
		for m := before.Add(time.Minute); !m.After(now); m = m.Add(time.Minute) {
			if !shown[m.Unix()] && o.matches(m.Year(), int(m.Month()), m.Day(), m.Hour(), m.Minute()) {
				for j := i; j < min(i+o.duration, minutes); j++ {
					opened[j] = true
				}
			}
			shown[m.Unix()] = true
		}
		before = now
	}
	return opened
}

func (o *oracle) schedule() string {
	text := func(list []int) string {
		if list == nil {
			return "*"
		}
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ",")
	}
	return strings.Join([]string{text(o.minutes), text(o.hours), text(o.days), text(o.months), text(o.weekdays)}, " ")
}

// drawOracle draws a window about the time of a change, with a schedule that starts: none on 31 November
// alone.
func drawOracle(t *rapid.T, zone *time.Location, at time.Time) *oracle {
	return rapid.Custom(func(t *rapid.T) *oracle { return drawAnyOracle(t, zone, at) }).Filter(func(o *oracle) bool {
		_, err := api.ParseSchedule(o.schedule())
		return err == nil
	}).Draw(t, "oracle")
}

func drawAnyOracle(t *rapid.T, zone *time.Location, at time.Time) *oracle {
	local := at.In(zone)
	list := func(label string, values ...int) []int {
		if rapid.IntRange(0, 2).Draw(t, label+" any") == 0 {
			return nil
		}
		return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 3, rapid.ID).Draw(t, label)
	}
	return &oracle{
		minutes:  rapid.SampledFrom([][]int{{0}, {30}, {0, 30}, {15}, {59}, {10, 20, 50}, nil}).Draw(t, "minutes"),
		hours:    list("hours", 0, 1, 2, 3, 4, 12, 23),
		days:     list("days", local.Day(), local.AddDate(0, 0, 1).Day(), local.AddDate(0, 0, -1).Day(), 15),
		months:   list("months", int(local.Month()), int(local.AddDate(0, 1, 0).Month())),
		weekdays: list("weekdays", 0, 1, 2, 3, 4, 5, 6),
		duration: rapid.SampledFrom([]int{1, 29, 60, 90, 23 * 60, 24 * 60, 25 * 60, 3 * 24 * 60}).Draw(t, "duration"),
		zone:     zone,
	}
}

func (o *oracle) window(t interface{ Fatal(args ...any) }, name string, kind api.WindowKind) *Window {
	w, err := NewWindow(&api.MoveWindow{Metadata: api.Metadata{Name: name}, Spec: api.MoveWindowSpec{
		Kind: kind, Schedule: o.schedule(), Duration: api.Duration(fmt.Sprint(o.duration, "m")), TimeZone: o.zone.String(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mustLoad(t interface{ Fatal(args ...any) }, name string) *time.Location {
	zone, err := timezone.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestWindowsEqualAnOracle compares windows with walking every minute, about every change of time in
// several time zones.
func TestWindowsEqualAnOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := rapid.SampledFrom(changesOfTime).Draw(t, "change")
		zone := mustLoad(t, change.zone)
		at, err := time.Parse(time.RFC3339, change.at)
		if err != nil {
			t.Fatal(err)
		}
		kinds := []api.WindowKind{api.WindowAllow, api.WindowDeny}
		var naive []*oracle
		var windows windowList
		// The change is in the middle of the days that are looked at; the walk begins earlier, so that
		// it sees the openings that are not over, and ends later, so that it sees when they are.
		const earlier, looked, walked = 4 * 24 * 60, 2 * 24 * 60, 12 * 24 * 60
		from := at.Add(-(earlier + looked/2) * time.Minute)
		var open [][]bool // by window and minute
		for i := range rapid.IntRange(1, 3).Draw(t, "windows") {
			o := drawOracle(t, zone, at)
			naive, windows = append(naive, o), append(windows, o.window(t, fmt.Sprint("w", i), rapid.SampledFrom(kinds).Draw(t, "kind")))
			open = append(open, o.open(from, walked))
		}
		held := func(minute int) bool {
			allows, allowed := false, false
			for i, w := range windows {
				if w.spec.Kind == api.WindowDeny && open[i][minute] {
					return true
				}
				allows = allows || w.spec.Kind == api.WindowAllow
				allowed = allowed || w.spec.Kind == api.WindowAllow && open[i][minute]
			}
			return allows && !allowed
		}
		// ends returns the first minute in which something is no longer so; at most the last.
		ends := func(minute int, so func(int) bool) int {
			for minute < walked && so(minute) {
				minute++
			}
			return minute
		}
		// changed returns how often windows open or close between two minutes.
		changed := func(from, to int) (n int) {
			for minute := from + 1; minute <= min(to, walked-1); minute++ {
				for i := range windows {
					if open[i][minute] != open[i][minute-1] {
						n++
					}
				}
			}
			return n
		}
		check := func(what string, minute, end int, until time.Time) {
			want := from.Add(time.Duration(end) * time.Minute)
			now := from.Add(time.Duration(minute) * time.Minute)
			switch {
			case end < walked && end-minute < int((horizon-day)/time.Minute) && !until.Equal(want):
				t.Fatalf("%s at %v until %v, want %v", what, now.In(zone), until.In(zone), want.In(zone))
			case until.IsZero() && end < walked, !until.IsZero() && until.Before(now.Add(horizon-day)) && until.Before(want):
				t.Fatalf("%s at %v until %v, want at least %v", what, now.In(zone), until.In(zone), want.In(zone))
			}
		}
		for range 6 {
			minute := earlier + rapid.IntRange(0, looked).Draw(t, "minute")
			now := from.Add(time.Duration(minute) * time.Minute)
			for i, w := range windows {
				what := fmt.Sprintf("window %q for %dm in %s", naive[i].schedule(), naive[i].duration, zone)
				got, until := w.isOpen(now.Add(13 * time.Second))
				if want := open[i][minute]; got != want {
					t.Fatalf("%s at %v: open is %t, want %t", what, now.In(zone), got, want)
				}
				check(what, minute, ends(minute, func(m int) bool { return open[i][m] == got }), until)
			}
			by, until := windows.holds(&Move{}, now)
			if want := held(minute); want != (by != nil) {
				t.Fatalf("at %v held by %v, want it held: %t", now.In(zone), by, want)
			}
			if by == nil {
				continue
			}
			end := ends(minute, held)
			if until.IsZero() { // too far ahead to search
				if end < walked && end-minute < int((horizon-day)/time.Minute) && changed(minute, end) < steps {
					t.Fatalf("held at %v without an end, want until %v", now.In(zone), from.Add(time.Duration(end)*time.Minute).In(zone))
				}
				continue
			}
			check("held", minute, end, until)
		}
	})
}

// TestWindowAtAChangeOfTime writes down what happens to local times that do not exist, or occur
// twice.
func TestWindowAtAChangeOfTime(t *testing.T) {
	for name, test := range map[string]struct {
		zone, schedule, after string
		want                  []string
	}{
		"a time that does not exist starts at the next instant": {"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"a time that occurs twice starts at the first":          {"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"every half hour":              {"Europe/Berlin", "*/30 1-3 * * *", "2026-10-24T23:29:00Z", []string{"2026-10-24T23:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"}},
		"half an hour does not exist":  {"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		"half an hour occurs twice":    {"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		"midnight does not exist":      {"America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00Z", []string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		"New York loses an hour":       {"America/New_York", "0 2 * * *", "2026-03-07T12:00:00Z", []string{"2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z"}},
		"New York gains an hour":       {"America/New_York", "0 1 * * *", "2026-10-31T12:00:00Z", []string{"2026-11-01T05:00:00Z", "2026-11-02T06:00:00Z"}},
		"Casablanca during Ramadan":    {"Africa/Casablanca", "30 2 * * *", "2026-03-21T12:00:00Z", []string{"2026-03-22T02:00:00Z", "2026-03-23T01:30:00Z"}},
		"a day that does not exist":    {"Pacific/Apia", "0 12 30 12 *", "2011-12-01T00:00:00Z", []string{"2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"}},
		"a leap day":                   {"UTC", "0 0 29 2 *", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"day of the month or the week": {"UTC", "0 0 13 * 5", "2026-11-05T00:00:00Z", []string{"2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			local, err := api.ParseSchedule(test.schedule)
			if err != nil {
				t.Fatal(err)
			}
			s := schedule{local, mustLoad(t, test.zone)}
			at, err := time.Parse(time.RFC3339, test.after)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if at = s.next(at); at.UTC().Format(time.RFC3339) != want {
					t.Fatalf("starts at %s, want %s", at.UTC().Format(time.RFC3339), want)
				}
			}
		})
	}
}

// TestWindowsWithoutAnEnd checks that no end is told that is not one: not how far was searched.
func TestWindowsWithoutAnEnd(t *testing.T) {
	always := &oracle{duration: 60, zone: time.UTC}
	evening := &oracle{minutes: []int{0}, hours: []int{18}, duration: 60, zone: time.UTC}
	denied := &oracle{minutes: []int{0}, hours: []int{17}, duration: 180, zone: time.UTC}
	for name, windows := range map[string]windowList{
		"always denied":          {always.window(t, "w", api.WindowDeny)},
		"denied while permitted": {evening.window(t, "a", api.WindowAllow), denied.window(t, "d", api.WindowDeny)},
	} {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		_, held := NewHolding(&Rules{Windows: windows}, nil, &api.Metadata{}, now).Take([]Move{{From: &api.Cluster{}}})
		if held == nil || !held.until.IsZero() || strings.Contains(held.String(), "until") || held.Rendered().Until != nil {
			t.Errorf("%s: held by %v, want without an end", name, held)
		} else if !held.Again.After(now) {
			t.Errorf("%s: looked at again at %v", name, held.Again)
		}
	}
}

// countedSchedule counts how often it is asked.
type countedSchedule struct {
	cron.Schedule
	asked *int
}

func (c countedSchedule) Next(t time.Time) time.Time { *c.asked++; return c.Schedule.Next(t) }

// TestWindowRemembersOverlappingOpenings checks that a window whose openings overlap for long is not searched again for
// every decision, and that it says the same as a window that is asked for the first time, as after a restart.
func TestWindowRemembersOverlappingOpenings(t *testing.T) {
	for _, tt := range []struct {
		schedule string
		duration api.Duration
	}{
		{"* * * * *", "1m"}, {"*/5 * * * *", "7m"}, {"0 * * * *", "150m"}, {"0 3 * * *", "24h"}, {"0 0,12 * * *", "130h"}, {"0 12 1,2 * *", "480h"},
	} {
		t.Run(tt.schedule+" "+string(tt.duration), func(t *testing.T) {
			window := func() *Window {
				w, err := NewWindow(&api.MoveWindow{Spec: api.MoveWindowSpec{Kind: api.WindowDeny, Schedule: tt.schedule, Duration: tt.duration, TimeZone: "Europe/Berlin"}})
				if err != nil {
					t.Fatal(err)
				}
				return w
			}
			w, asked := window(), 0
			w.schedule.local = countedSchedule{w.schedule.local, &asked}
			for now, end := time.Date(2026, 3, 27, 0, 0, 10, 0, time.UTC), time.Date(2026, 3, 30, 0, 0, 0, 0, time.UTC); now.Before(end); now = now.Add(5*time.Hour + 59*time.Minute) {
				w.isOpen(now)
				before := asked
				soon := now.Add(30 * time.Second)
				open, until := w.isOpen(soon)
				if asked != before {
					t.Errorf("%s: searched again 30 seconds later, in %d steps", now, asked-before)
				}
				if fresh, end := window().isOpen(soon); open != fresh || !until.Equal(end) {
					t.Errorf("%s: open %t until %s, but a new window says %t until %s", soon, open, until, fresh, end)
				}
			}
		})
	}
}

// TestBudgetsEqualAnOracle compares budgets with counting, every minute, what was used in the time
// before.
func TestBudgetsEqualAnOracle(t *testing.T) {
	start := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 3).Draw(t, "limits")
		pers := rapid.SliceOfN(rapid.IntRange(1, 30), len(limits), len(limits)).Draw(t, "minutes")
		var used []Use
		counts := map[int]int{} // by minute
		for minute := range 120 {
			now := start.Add(time.Duration(minute) * time.Minute)
			var budgets []Budget
			left := 1000
			for i, limit := range limits {
				per := time.Duration(pers[i]) * time.Minute
				budgets = append(budgets, NewBudget(fmt.Sprint("b", i), int64(limit), per, used, now))
				n := limit
				for m := minute - pers[i] + 1; m <= minute; m++ {
					n -= counts[m]
				}
				left = min(left, n)
			}
			moves := make([]Move, rapid.IntRange(0, 3).Draw(t, "moves"))
			for i := range moves {
				moves[i].From = &api.Cluster{}
			}
			h := NewHolding(&Rules{}, budgets, &api.Metadata{}, now)
			made, held := h.Take(moves)
			n := int(Count(moves, made))
			if want := max(min(left, len(moves)), 0); n != want {
				t.Fatalf("in minute %d, %d of %d moves are made, want %d", minute, n, len(moves), want)
			}
			if (held != nil) != (n < len(moves)) {
				t.Fatalf("in minute %d, held by %v with %d of %d made", minute, held, n, len(moves))
			}
			if n > 0 {
				used = append(used, Use{now, int64(n)})
				counts[minute] += n
			}
			if held == nil || held.until.IsZero() {
				continue
			}
			// A budget that holds one still does so just before, and no longer then.
			i := slices.IndexFunc(budgets, func(b Budget) bool { return b.Name == held.Name })
			per := time.Duration(pers[i]) * time.Minute
			if before := NewBudget("", int64(limits[i]), per, used, held.until.Add(-time.Second)); before.Left > 0 {
				t.Fatalf("in minute %d held until %v, and %d are left before", minute, held.until, before.Left)
			}
			if after := NewBudget("", int64(limits[i]), per, used, held.until); after.Left <= 0 {
				t.Fatalf("in minute %d held until %v, and still then", minute, held.until)
			}
		}
	})
}

// TestAmountsRoundUp checks that percentages are rounded up.
func TestAmountsRoundUp(t *testing.T) {
	for _, test := range []struct {
		amount api.MoveAmount
		of     int64
		want   int64
	}{{"3", 100, 3}, {"10%", 100, 10}, {"10%", 101, 11}, {"1%", 1, 1}, {"0%", 100, 0}, {"100%", 7, 7}, {"10%", 0, 0}, {"x", 5, 0}} {
		if got := test.amount.Of(test.of); got != test.want {
			t.Errorf("%s of %d is %d, want %d", test.amount, test.of, got, test.want)
		}
	}
}

// FuzzSchedule checks that every text is either a schedule that starts, in any time zone, or an
// error.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{"0 22 * * 1-5", "*/5 * * * *", "0 0 29 2 *", "0 0 30 2 *", "TZ=0 * * * *", "@daily", "CRON_TZ=UTC * * * * *", "60 * * * *", "1-0 * * * *", "*/0 * * * *", "9999999999999999999 * * * *", "? ? ? ? ?", "* * * jan-dec sun,mon"} {
		f.Add(text)
	}
	zone := mustLoad(f, "Australia/Lord_Howe")
	f.Fuzz(func(t *testing.T, text string) {
		local, err := api.ParseSchedule(text)
		if err != nil {
			return
		}
		at := time.Date(2026, 4, 4, 14, 0, 0, 0, time.UTC)
		for range 100 {
			next := schedule{local, zone}.next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q starts at %v, which is not after %v", text, next, at)
			}
			at = next
		}
	})
}

// TestWhatIsToldOfAHoldStaysTrue checks that nothing else is to be told of a hold before the time at which it is looked
// at again: other windows open and close meanwhile.
func TestWhatIsToldOfAHoldStaysTrue(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var rules Rules
		for i := range rapid.IntRange(1, 3).Draw(t, "windows") {
			w := &api.MoveWindow{Metadata: api.Metadata{Name: fmt.Sprint("w", i)}, Spec: api.MoveWindowSpec{
				Kind:     rapid.SampledFrom([]api.WindowKind{api.WindowAllow, api.WindowDeny}).Draw(t, "kind"),
				Schedule: fmt.Sprintf("*/%d 12-13 * * *", rapid.IntRange(3, 40).Draw(t, "minutes")),
				Duration: api.Duration(fmt.Sprintf("%dm", rapid.IntRange(1, 20).Draw(t, "duration"))),
			}}
			if rapid.Bool().Draw(t, "for a reason") {
				w.Spec.Reasons = []api.CauseType{api.CauseMetric}
			}
			compiled, err := NewWindow(w)
			if err != nil {
				t.Fatal(err)
			}
			rules.Windows = append(rules.Windows, compiled)
		}
		limit, used := rapid.IntRange(0, 2).Draw(t, "limit"), []Use{{At: start.Add(-time.Minute), Moves: 1}}
		moves := []Move{{From: &api.Cluster{}, Reason: api.CauseMetric}, {Reason: api.CauseScore}, {From: &api.Cluster{}, Reason: api.CauseScore}}
		at := func(now time.Time) ([]bool, *Held) {
			budgets := []Budget{NewBudget("b", int64(limit), 10*time.Minute, used, now)}
			return NewHolding(&rules, budgets, &api.Metadata{}, now).Take(moves)
		}
		now := start.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "minute")) * time.Minute)
		made, held := at(now)
		if held == nil {
			return
		}
		used = append(used, Use{now, Count(moves, made)})
		for i := len(moves) - 1; i >= 0; i-- {
			if made[i] {
				moves = slices.Delete(moves, i, i+1)
			}
		}
		for later := now; later.Before(now.Add(time.Hour)) && (held.Again.IsZero() || later.Before(held.Again)); later = later.Add(30 * time.Second) {
			_, got := at(later)
			if got == nil || got.By != held.By || got.Name != held.Name || got.By == api.HeldByWindow && !got.until.Equal(held.until) {
				t.Fatalf("held at %v by %v, looked at again at %v, and at %v by %v", now, held, held.Again, later, got)
			}
		}
	})
}
