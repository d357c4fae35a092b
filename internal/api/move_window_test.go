package api

import (
	"slices"
	"strings"
	"testing"
)

func TestMoveWindowProblems(t *testing.T) {
	const values = `, as "*", a value, a range such as "1-5", a step such as "*/2", or several of them such as "1,3"`
	for name, test := range map[string]struct {
		spec MoveWindowSpec
		want []string
	}{
		"valid": {MoveWindowSpec{Kind: WindowDeny, Schedule: "*/15 22 ? jan mon-fri", Duration: "8h"}, nil},
		"nothing": {MoveWindowSpec{}, []string{
			`spec.kind: is required: one of "allow", "deny"`,
			`spec.schedule: "" is not a schedule: write the five fields of a cron expression, minute, hour, day of the month, month and day of the week, such as "0 22 * * 1-5"`,
			`spec.duration: is required, such as "8h"`,
		}},
		"minute": {MoveWindowSpec{Kind: WindowDeny, Schedule: "60 * * * *", Duration: "8h"},
			[]string{`spec.schedule: "60 * * * *" is not a schedule: "60" is no minute: it may be from 0 to 59` + values}},
		"a step of nothing": {MoveWindowSpec{Kind: WindowDeny, Schedule: "0 */0 * * *", Duration: "8h"},
			[]string{`spec.schedule: "0 */0 * * *" is not a schedule: "*/0" is no hour: it may be from 0 to 23` + values}},
		"last day": {MoveWindowSpec{Kind: WindowDeny, Schedule: "0 0 L * *", Duration: "8h"},
			[]string{`spec.schedule: "0 0 L * *" is not a schedule: "L" is no day of the month: it may be from 1 to 31` + values}},
		"month": {MoveWindowSpec{Kind: WindowDeny, Schedule: "0 0 1 13 *", Duration: "8h"},
			[]string{`spec.schedule: "0 0 1 13 *" is not a schedule: "13" is no month: it may be from 1 to 12 or jan to dec` + values}},
		"sunday": {MoveWindowSpec{Kind: WindowDeny, Schedule: "0 0 * * 7", Duration: "8h"},
			[]string{`spec.schedule: "0 0 * * 7" is not a schedule: "7" is no day of the week: it may be from 0 (Sunday) to 6 or sun to sat` + values}},
		"no such day": {MoveWindowSpec{Kind: WindowDeny, Schedule: "0 0 30 2 *", Duration: "8h"},
			[]string{`spec.schedule: "0 0 30 2 *" never starts: there is no such day`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &MoveWindow{Metadata: Metadata{Name: "nights"}, Spec: test.spec}
			w.SetDefaults()
			var got []string
			for _, e := range w.Validate() {
				got = append(got, e.Field+": "+e.Message)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s\nwant %s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
