// Package anthropic has the dialect of Anthropic's messages, [Messages]. Package
// bedrock uses it for Claude on Amazon Bedrock.
package anthropic
