// Package anthropic has the dialect of Anthropic's Messages API, [Messages].
//
// Callers do not use the dialect directly: package [github.com/tract-vcs/tract/llm/providers]
// finds it by name. Package bedrock uses the exported functions for Claude on Amazon Bedrock.
// The dialect promises that a response is sent back as it came: a member that has no field is
// kept in a block's extra. It does no I/O and no retries: that is the work of package
// providers.
package anthropic
