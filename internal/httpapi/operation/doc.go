// Package operation contains what the operations of the API share: registration and description,
// access, reading bodies, and waiting.
//
// Bodies are not decoded and validated by huma. It would be less strict than internal/api (unknown
// and duplicate fields, numbers, null), report one invalid field instead of all, with other texts
// and without the paths that the provider maps to attributes, and decode a simulation of 64 MiB
// into a generic tree. So a body is a Payload to huma, DescribeBody adds its schema to the OpenAPI
// document, and Decode uses the decoder of the rest of the system.
package operation
