// Package llmtest plays providers. A [Server] answers on the loopback interface
// as a script says and notes what it was asked; a [Recorder] writes down what a
// real provider said, without secrets, as a script for later; [Run] holds any
// client to the promises of package llm.
//
// Nothing here is a mock: what is tested talks HTTP to a server. The server may
// be used outside tests, to show a client without a provider.
package llmtest
