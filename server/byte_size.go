package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// byteSize is a setting in bytes, in Kubernetes notation: "4Gi".
type byteSize int64

// String implements pflag.Value.
func (b *byteSize) String() string {
	return resource.NewQuantity(int64(*b), resource.BinarySI).String()
}

// Set implements pflag.Value.
func (b *byteSize) Set(text string) error {
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() <= 0 {
		return fmt.Errorf("%q is not a size: write a number above 0 with an optional suffix, such as \"512Mi\" or \"4Gi\"", text)
	}
	*b = byteSize(quantity.Value())
	return nil
}

// Type implements pflag.Value.
func (b *byteSize) Type() string { return "size" }
