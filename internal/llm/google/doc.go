// Package google has the dialects of Google: [Gemini], which is generateContent,
// and [Interactions].
package google
