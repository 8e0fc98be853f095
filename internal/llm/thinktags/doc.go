// Package thinktags takes the reasoning out of a text that has it between think
// tags, such as <think> and </think>. [Splitter] does so while the text arrives.
package thinktags
