// Package operation has what the operations of the API share: how they are registered
// and described, who may call them, how their bodies are read, and how long they wait.
//
// Bodies do not pass huma's own reading and checking. It would take them less strictly
// than internal/api (unknown and duplicate fields, numbers, null), report one wrong field
// in place of all, in other words and without the paths that the provider maps to
// attributes, and copy a simulation of 64 MiB through a generic tree. So a body is a
// Payload to huma, DescribeBody puts its schema into the OpenAPI document, and Decode
// reads it with the decoder that the rest of the system uses.
package operation
