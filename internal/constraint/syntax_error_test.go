package constraint

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	labelOperators = []string{"is", "=", "==", "is not", "!=", "in", "not in"}
	// In the order of the documentation; "lesser" is the old spelling of "less".
	metricOperators = []string{
		"is", "=", "==", "is not", "!=",
		"greater than", "gt", ">", "greater than or equal", "gte", ">=", "=>",
		"less than", "lesser than", "lt", "<", "less than or equal", "lesser than or equal", "lte", "<=", "=<",
	}
)

type syntaxErrorTest struct {
	name, text string
	column     int
	kind       ErrorKind
	expected   []string
	says       string // part of the message
}

func TestLabelSyntaxErrors(t *testing.T) {
	value, end, longKey := []string{"a value"}, []string{"the end"}, strings.Repeat("k", 64)
	for _, tt := range []syntaxErrorTest{
		{"empty", "", 1, Grammar, []string{"a label key"}, "a label key is missing"},
		{"blanks only", " \t\n", 4, Grammar, []string{"a label key"}, "a label key is missing"},
		{"no key", "= DE", 1, Grammar, []string{"a label key"}, `before "="`},
		{"only a key", "location", 9, Grammar, labelOperators, `an operator is missing after "location"`},
		{"no operator", "location DE", 10, Grammar, labelOperators, `"DE" is not an operator`},
		{"unknown operator", "location like DE", 10, Grammar, labelOperators, `"like" is not an operator`},
		{"keyword in upper case", "location IS DE", 10, Grammar, labelOperators, "lower case"},
		{"keyword in mixed case", "location In (DE)", 10, Grammar, labelOperators, "lower case"},
		{"no blank after is", "location isDE", 10, Grammar, labelOperators, `put spaces around "is"`},
		{"isnot", "location isnot DE", 10, Grammar, labelOperators, `put spaces around "is not"`},
		{"isnot as the last word", "location isnot", 10, Grammar, labelOperators, `put spaces around "is not"`},
		{"notin", "location notin (DE)", 10, Grammar, labelOperators, `put spaces around "not in"`},
		{"no blank before is", "locationis DE", 12, Grammar, labelOperators, `"DE" is not an operator`},
		{"no blanks at all", "locationisDE", 13, Grammar, labelOperators, "an operator is missing"},
		{"key like a keyword", "is DE", 4, Grammar, labelOperators, `"DE" is not an operator`},
		{"exclamation mark alone", "location ! DE", 10, Grammar, labelOperators, `"!" is not an operator`},
		{"parenthesis after the key", "location (DE)", 10, Grammar, labelOperators, `"(" is not an operator`},
		{"order", "location > 5", 10, Grammar, labelOperators, "labels can only be compared for equality"},
		{"order without blanks", "location<5", 9, Grammar, labelOperators, "labels can only be compared for equality"},
		{"order or equal without blanks", "location>=5", 9, Key, nil, "only metrics by order"},
		{"half of not in", "location not DE", 14, Grammar, []string{"in"}, `"in" is missing after "not"`},
		{"half of not in at the end", "location not", 13, Grammar, []string{"in"}, `"in" is missing after "not"`},
		{"value missing after is", "location is", 12, Grammar, value, `a value is missing after "is"`},
		{"value missing after is, blanks", "location is  ", 14, Grammar, value, `a value is missing after "is"`},
		{"value missing after a symbol", "location!=", 11, Grammar, value, `a value is missing after "!="`},
		{"two symbols", "location = = DE", 12, Grammar, value, `, found "="`},
		{"three equals signs", "location===DE", 11, Grammar, value, `, found "="`},
		{"split symbol", "location ! = DE", 10, Grammar, labelOperators, `"!" is not an operator`},
		{"word and symbol", "location is = DE", 13, Grammar, value, `leave out "is"`},
		{"parentheses after is", "location is (DE)", 13, Grammar, value, `, found "("`},
		{"is in", "location is in (DE)", 10, Grammar, []string{"in"}, `leave out "is"`},
		{"is not in", "is is not in (DE)", 4, Grammar, []string{"not in"}, `leave out "is"`},
		{"two values", "location is DE SK", 16, Grammar, end, `unexpected "SK" after the end`},
		{"is not not", "location is not not DE", 21, Grammar, end, `unexpected "DE" after the end`},
		{"list without in", "location is DE, SK", 15, Grammar, end, "in (a, b)"},
		{"list without parentheses", "location in DE", 13, Grammar, []string{"("}, `"(" is missing after "in"`},
		{"list missing", "location not in", 16, Grammar, []string{"("}, `"(" is missing after "not in"`},
		{"not in in", "not in in (a)", 8, Grammar, []string{"("}, `, found "in"`},
		{"empty list", "location in ()", 14, Grammar, value, `, found ")"`},
		{"list of a comma", "location in (,)", 14, Grammar, value, `, found ","`},
		{"leading comma", "location in (,DE)", 14, Grammar, value, `, found ","`},
		{"list not begun", "location in (", 14, Grammar, value, "a value is missing in the list"},
		{"list not closed", "location in (DE", 16, Grammar, []string{",", ")"}, `"," or ")" is missing`},
		{"list not closed after a comma", "location in (DE,", 17, Grammar, []string{"a value", ",", ")"}, `a value, "," or ")" is missing`},
		{"comma left out", "location in (DE SK)", 17, Grammar, []string{",", ")"}, `, found "SK"`},
		{"value after two commas", "location in (DE,,SK)", 18, Grammar, []string{",", ")"}, `, found "SK"`},
		{"symbol in a list", "location in (DE=SK)", 16, Grammar, []string{",", ")"}, `, found "="`},
		{"list in a list", "location in ((DE))", 14, Grammar, value, `, found "("`},
		{"closed twice", "location in (DE))", 17, Grammar, end, `unexpected ")" after the end`},
		{"text after the list", "location in (DE) SK", 18, Grammar, end, `unexpected "SK" after the end`},
		{"columns count characters", "örtlichkeit ist ü", 13, Grammar, labelOperators, `"ist" is not an operator`},
		{"grammar before key", "a//b is", 8, Grammar, value, "a value is missing"},
		{"key before value", "a//b is $", 3, Key, nil, `more than one "/"`},
		{"two slashes", "a/b/c is d", 4, Key, nil, `more than one "/"`},
		{"no prefix", "/loc is DE", 1, Key, nil, `has no prefix before the "/"`},
		{"no name", "loc/ is DE", 5, Key, nil, `has no name after the "/"`},
		{"key of a dot", ". == DE", 1, Key, nil, `starts with "."`},
		{"key ends in a hyphen", "loc- is DE", 4, Key, nil, `ends with "-"`},
		{"prefix ends in a dot", "a./loc is DE", 2, Key, nil, `the prefix of the label key "a." ends with "."`},
		{"name after the prefix", "a/-b is DE", 3, Key, nil, `starts with "-"`},
		{"key not ASCII", "loç is DE", 3, Key, nil, `contains "ç"`},
		{"key too long", longKey + " is x", 1, Key, nil, "64 characters: at most 63"},
		{"prefix too long", strings.Repeat("k", 254) + "/k is x", 1, Key, nil, "254 characters: at most 253"},
		{"value in quotes", `location is "DE"`, 13, Value, nil, "without quotes"},
		{"value with a slash", "location is DE/BY", 15, Value, nil, `contains "/"`},
		{"value of other characters", "location is $DE", 13, Value, nil, `contains "$"`},
		{"value ends in a hyphen", "location=DE-", 12, Value, nil, `ends with "-"`},
		{"value with an order", "location =>5", 11, Value, nil, "only metrics by order"},
		{"value too long", "location=" + longKey, 10, Value, nil, "64 characters: at most 63"},
		{"second value of a list", "ö/l in (DE, S§K)", 1, Key, nil, `contains "ö"`},
		{"value of a list", "loc in (DE, S§K)", 14, Value, nil, `contains "§"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseLabel(tt.text)
			checkSyntaxError(t, tt, err)
		})
	}
}

func TestMetricSyntaxErrors(t *testing.T) {
	number, end := []string{"a number"}, []string{"the end"}
	for _, tt := range []syntaxErrorTest{
		{"empty", "", 1, Grammar, []string{"a metric name"}, "a metric name is missing"},
		{"no name", "> 5", 1, Grammar, []string{"a metric name"}, `before ">"`},
		{"only a name", "load", 5, Grammar, metricOperators, `an operator is missing after "load"`},
		{"no operator", "load 5", 6, Grammar, metricOperators, `"5" is not an operator`},
		{"equals", "load equals 5", 6, Grammar, metricOperators, `"equals" is not an operator`},
		{"list", "load in (5)", 6, Grammar, metricOperators, `"in" is not an operator`},
		{"keyword in upper case", "load GT 5", 6, Grammar, metricOperators, "lower case"},
		{"no blank after the keyword", "load gte5", 6, Grammar, metricOperators, `put spaces around "gte"`},
		{"two words in one", "load lessthan 5", 6, Grammar, metricOperators, `put spaces around "less than"`},
		{"number missing", "load >", 7, Grammar, number, `a number is missing after ">"`},
		{"number missing after is not", "load is not", 12, Grammar, number, `a number is missing after "is not"`},
		{"number missing after words", "load less than or equal", 24, Grammar, number, `a number is missing after "less than or equal"`},
		{"half an operator", "load greater 5", 14, Grammar, []string{"than"}, `"than" is missing after "greater"`},
		{"half an operator at the end", "load lesser", 12, Grammar, []string{"than"}, `"than" is missing after "lesser"`},
		{"three quarters of an operator", "load greater than or 5", 22, Grammar, []string{"equal"}, `"equal" is missing after "or"`},
		{"or equal to", "load greater than or equal to 5", 28, Grammar, number, `, found "to"`},
		{"is and an operator of words", "load is greater than 5", 9, Grammar, number, `leave out "is"`},
		{"is and a symbol", "load is >= 5", 9, Grammar, number, `leave out "is"`},
		{"doubled", "load >> 5", 7, Grammar, number, `, found ">"`},
		{"less or greater", "load <> 5", 7, Grammar, number, `, found ">"`},
		{"split symbol", "load > = 5", 8, Grammar, number, `, found "="`},
		{"parentheses", "load == (5, 7)", 9, Grammar, number, `, found "("`},
		{"blank after the sign", "load > - 5", 8, Grammar, number, `, found "-"`},
		{"decimal comma", "load > 1,5", 9, Grammar, end, `unexpected "," after the end`},
		{"unit", "load > 5 ms", 10, Grammar, end, `unexpected "ms" after the end`},
		{"grammar before name", "/load >", 8, Grammar, number, "a number is missing"},
		{"name before number", "/load > abc", 1, Key, nil, `the metric name "/load" has no prefix before the "/"`},
		{"name ends in a hyphen", "load- > 5", 5, Key, nil, `the metric name "load-" ends with "-"`},
		{"word", "load is abc", 9, Value, number, `"abc" is not a finite decimal number`},
		{"keyword", "load gt greater", 9, Value, number, `"greater" is not a finite decimal number`},
		{"infinite", "load<-inf", 6, Value, number, `"-inf" is not a finite decimal number`},
		{"too large", "load<1e999", 6, Value, number, `"1e999" is too large`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseMetric(tt.text)
			checkSyntaxError(t, tt, err)
		})
	}
}

func checkSyntaxError(t *testing.T, tt syntaxErrorTest, err error) {
	t.Helper()
	var got *SyntaxError
	if !errors.As(err, &got) {
		t.Fatalf("%q: got %v, want a *SyntaxError", tt.text, err)
	}
	if got.Column != tt.column || got.Kind != tt.kind || !slices.Equal(got.Expected, tt.expected) || got.Text != tt.text {
		t.Errorf("got column %d, %s, expected %q; want column %d, %s, expected %q",
			got.Column, got.Kind, got.Expected, tt.column, tt.kind, tt.expected)
	}
	if !strings.Contains(got.Message, tt.says) {
		t.Errorf("message %q does not contain %q", got.Message, tt.says)
	}
}

func TestSyntaxErrorText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{
			"operators", "location DE",
			`constraint "location DE", column 10: "DE" is not an operator; expected "is", "=", "==", "is not", "!=", "in" or "not in"`,
		},
		{
			"what is missing is said once", "location is",
			`constraint "location is", column 12: a value is missing after "is"`,
		},
		{
			"rules of a key", "/loc is DE",
			`constraint "/loc is DE", column 1: the label key "/loc" has no prefix before the "/"`,
		},
		{
			"control characters are escaped", "location\nis\x00",
			`constraint "location\nis\x00", column 10: "is\x00" is not an operator: put spaces around "is"; expected "is", "=", "==", "is not", "!=", "in" or "not in"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseLabel(tt.text)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestSyntaxErrorOfLongTextStaysShort(t *testing.T) {
	word := strings.Repeat("ä", 100_000)
	for _, text := range []string{
		word,
		word + " is x",
		"location is " + word,
		"location is x " + word,
		"location " + word + " x",
		strings.Repeat(" ", 100_000) + "location",
		"location in (" + strings.Repeat("a,", 100_000) + " b",
	} {
		_, err := ParseLabel(text)
		if err == nil {
			t.Errorf("%.40q…: no error", text)
			continue
		}
		if n := utf8.RuneCountInString(err.Error()); n > 700 {
			t.Errorf("%.40q…: the error has %d characters", text, n)
		}
	}
}
