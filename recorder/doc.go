// Package recorder commits what a program says to models through the client library
// of a provider, or through `tract proxy`. [New] makes a [Transport], which goes into the
// http.Client that the library is given:
//
//	t := recorder.New(repo, recorder.Options{})
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: t}))
//
// The library sees what it would see without the transport: every byte when it comes, and
// no error of the store. An exchange is committed after its response has ended, in the
// order of its session; exchanges of different sessions are committed at the same time.
// What cannot be recorded is reported to Options.OnError.
//
// A client sends the whole conversation each time, and the transport adds only what is
// new. Which conversation a request continues is read from the headers and the body that
// coding agents send ([On] and X-Tract-Session name it, too): identity.go has the table.
// Within a conversation, internal/reconcile finds what is new: a past that the client changed
// or shortened goes on as edits, another continuation is a fork on a branch of its own. A
// request that names no conversation continues one only where ids of calls, items and
// responses, seals, or its whole text leave no doubt; equal text alone never joins two
// conversations.
//
// A refusal becomes a note after the question; a response that broke off is kept under a
// rescue ref. Which requests are to models is decided by the path (providers.Recognize);
// others pass and are counted. Of the headers of a request only those that name the
// conversation are kept, of a response only its id.
package recorder
