// Package recorder records the requests that a program sends to models, and the responses,
// as commits. The program uses the client library of a provider, or `tract proxy`. [New]
// returns a [Transport] for the http.Client that the library uses:
//
//	t := recorder.New(repo, recorder.Options{})
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: t}))
//
// The transport changes nothing for the library: the library receives every byte as soon as
// it arrives, and no error of the store. An exchange (a request and its response) is
// committed after its response has ended. The exchanges of one session are committed in
// order; exchanges of different sessions are committed concurrently. Options.OnError
// receives every exchange that could not be recorded.
//
// A client sends the whole conversation with each request, and the recorder commits only the
// new blocks. To find the conversation, the recorder reads the headers and body fields that
// coding agents send (identity.go lists them), the header X-Tract-Session, and the branch
// that [On] names. Package internal/reconcile then compares the request with the
// conversation: if the client changed or removed earlier blocks, the changes are committed
// as edits; if the client continued from an earlier block, the continuation becomes a fork
// on its own branch. A request that names no conversation continues an existing one only if
// the ids of its calls, items and responses, its seals, or its whole text identify exactly
// one; equal text alone never joins two conversations.
//
// When a provider refuses a request, a note with the refusal is committed after the question. A response that
// broke off is kept under a rescue ref. providers.Recognize decides by the URL which requests are sent to
// models; other requests pass through and are counted. Of the request headers, only those that name the
// conversation are kept; of the response headers, only the request id, Retry-After and those that describe
// the body.
package recorder
