package arktos

import (
	"math"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// unit is the unit of a number in the Arktos API.
type unit int

const (
	pieces    unit = iota // processors, addresses
	mebibytes             // memory
	gibibytes             // storage
)

// maxAmount limits every number: a million times the largest fleet, and far from where a float64
// loses precision.
const maxAmount = 1e12

// quantity converts a number in its unit, rounded down to thousandths of a piece, KiB of memory and
// MiB of storage. message says what is wrong with the number.
func quantity(number float64, u unit) (amount api.Quantity, message string) {
	switch {
	case number < 0:
		return "", format(number) + " must not be negative"
	case math.IsNaN(number) || number > maxAmount:
		return "", format(number) + " must be a number of at most 1e12"
	}
	whole, suffix, part, finer := number, "", 1000.0, "m"
	switch u {
	case mebibytes:
		suffix, part, finer = "Mi", 1024, "Ki"
	case gibibytes:
		suffix, part, finer = "Gi", 1024, "Mi"
	case pieces:
	}
	if whole != math.Trunc(whole) {
		whole, suffix = math.Floor(number*part), finer
	}
	if whole == 0 {
		return "0", ""
	}
	return api.Quantity(strconv.FormatInt(int64(whole), 10) + suffix), ""
}

func format(number float64) string { return strconv.FormatFloat(number, 'g', -1, 64) }

// amounts collects quantities by resource, and errors.
type amounts struct {
	quantities api.Quantities
	errs       api.FieldErrors
}

// set sets an amount if a number is given.
func (a *amounts) set(field, resource string, number *float64, u unit) {
	if number == nil {
		return
	}
	amount, message := quantity(*number, u)
	if message != "" {
		a.errs.Add(field, "%s", message)
		return
	}
	if a.quantities == nil {
		a.quantities = api.Quantities{}
	}
	a.quantities[resource] = amount
}

// storageBody is an amount of one volume type, in GB.
type storageBody struct {
	TypeID          string
	StorageCapacity *float64
}

// setStorage sets volumes. Several entries of one type, which collectors send for different pools,
// are added up.
func (a *amounts) setStorage(field string, volumes []storageBody) {
	sums := map[string]float64{}
	for i, v := range volumes {
		at := field + "[" + strconv.Itoa(i) + "]"
		resource := api.ResourceStoragePrefix + v.TypeID
		switch {
		case v.TypeID == "":
			a.errs.Add(at+".TypeId", "is required")
		case v.StorageCapacity == nil:
			a.errs.Add(at+".StorageCapacity", "is required")
		case *v.StorageCapacity < 0:
			a.errs.Add(at+".StorageCapacity", "%s must not be negative", format(*v.StorageCapacity))
		default:
			// An invalid name is found in the usual way.
			if err := (&api.Heartbeat{Allocatable: api.Quantities{resource: "0"}}).Validate().Err(); err != nil {
				a.errs.Add(at+".TypeId", "%q must consist of at most 63 letters, digits, dashes, dots and underscores, and begin and end with a letter or a digit", v.TypeID)
				continue
			}
			sums[resource] += *v.StorageCapacity
			sum := sums[resource]
			a.set(at+".StorageCapacity", resource, &sum, gibibytes)
		}
	}
}

// number converts a quantity to a number in a unit, rounded down; 0 if it is invalid.
func number(q api.Quantity, u unit) int64 {
	milli, err := q.Milli()
	if err != nil {
		return 0
	}
	units := milli.Units()
	switch u {
	case mebibytes:
		return units >> 20
	case gibibytes:
		return units >> 30
	case pieces:
	}
	return units
}
