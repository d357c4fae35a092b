package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// OpenTofu may send a null argument as a value without data.
func TestNullArgumentWithoutData(t *testing.T) {
	argument := func(v tftypes.Value) *tfprotov6.DynamicValue {
		dynamic, err := tfprotov6.NewDynamicValue(v.Type(), v)
		if err != nil {
			t.Fatal(err)
		}
		return &dynamic
	}
	server := NewServer("test")()
	resp, err := server.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{
		Name: "split_replicas",
		Arguments: []*tfprotov6.DynamicValue{
			argument(tftypes.NewValue(tftypes.String, "Deployment")), argument(tftypes.NewValue(tftypes.Number, 5)), {}, {},
		},
	})
	if err != nil || resp.Error != nil || resp.Result == nil {
		t.Fatalf("the call gives %+v, %v", resp, err)
	}
	// If null is not allowed, the error says so.
	resp, err = server.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{
		Name:      "split_replicas",
		Arguments: []*tfprotov6.DynamicValue{{}, argument(tftypes.NewValue(tftypes.Number, 5)), {}, {}},
	})
	if err != nil || resp.Error == nil {
		t.Fatalf("a null kind gives %+v, %v", resp, err)
	}
}
