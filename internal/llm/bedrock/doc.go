// Package bedrock has the dialects of Amazon Bedrock: [Converse], and [Invoke],
// which is Anthropic's messages through InvokeModel.
package bedrock
