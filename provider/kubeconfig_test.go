package provider_test

// kubeconfigHCL is a self-contained kubeconfig, as a Terraform expression. Its cluster refuses connections.
const kubeconfigHCL = `jsonencode({
	    "current-context" = "c"
	    contexts          = [{ name = "c", context = { cluster = "k", user = "u" } }]
	    clusters          = [{ name = "k", cluster = { server = "https://127.0.0.1:1" } }]
	    users             = [{ name = "u", user = { token = "the first secret" } }]
	  })`
