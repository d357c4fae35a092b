package constraint

import "testing"

// Some version of three numbers meets a constraint, or none does.
func TestPossible(t *testing.T) {
	for text, want := range map[string]bool{
		">= 1.33": true, ">= 1.33, < 2": true, "1.33": true, "~> 1.33.2, != 1.33.2": true, "< 1": true, "!= 0, < 0.0.2": true,
		"> 1.33.1, <= 1.33.2": true, ">= 1.33, != 1.33.0, != 1.33.1": true,
		">= 2, < 1": false, "1.32, 1.33": false, "< 0": false, "> 1.33.1, < 1.33.2": false, "~> 1.33.0, >= 1.34": false, "1.33, != 1.33.0": false,
	} {
		v, err := ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		if v.Possible() != want {
			t.Errorf("%s: Possible() = %t", text, !want)
		}
	}
}
