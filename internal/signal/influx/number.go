package influx

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// number converts the value of a field to a number, or returns an error that describes it. NaN and
// infinities pass: they are handled where the range of the metric is known.
func number(value any) (float64, error) {
	switch v := value.(type) {
	case nil:
		return 0, errors.New("null")
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	case uint64:
		return float64(v), nil
	case json.Number:
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return 0, errors.New("a number out of range")
		}
		return f, nil
	case bool:
		return 0, fmt.Errorf("the boolean %t", v)
	case string:
		return 0, errors.New("a text")
	}
	return 0, errors.New("of a type that is not a number")
}
