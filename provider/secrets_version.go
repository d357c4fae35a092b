package provider

import "github.com/hashicorp/terraform-plugin-framework/resource/schema"

// secretsVersion is the attribute whose change sends the write-only values
// again: Terraform cannot see that they changed.
const secretsVersion = "secrets_version"

func secretsVersionAttribute() schema.Attribute {
	return schema.Int64Attribute{
		CustomType:          wholeNumber{},
		MarkdownDescription: "Any whole number; change it to send the write-only values again, for Terraform cannot see that they changed. They are also sent with every other change.",
		Optional:            true,
	}
}
