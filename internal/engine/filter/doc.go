// Package filter says which clusters may be chosen. Each filter compiles what is asked
// for to checks; a check says of itself what it reads and until when its answer holds.
//
// A check is what a filter makes of one thing that is asked for, as one label
// constraint. Equal keys mean equal answers, so whoever asks for the same shares a
// mask. What is ours alone: clusters of the present decision are judged more mildly,
// by some checks; blame and cause are the parts of the sentence about those that do
// not fit.
package filter
