// Package recorder commits what a program says to models through the client library
// of a provider. [New] makes a [Transport], which goes into the http.Client that the
// library is given:
//
//	t := recorder.New(repo, recorder.Options{})
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: t}))
//
// The library sees what it would see without it: every byte when it comes, and no
// error of the store. What cannot be recorded is told to Options.OnError.
//
// A client sends the whole conversation each time. The transport finds the longest
// history that compiles to what a request begins with, in all branches, and adds
// only what is new: to the branch that stands there, or else to a fork. [On] names
// the branch. The thoughts and the answer follow as Branch.Generate would commit
// them, with usage and a manifest that has the hash of what was sent. The same
// request again finds the same place. A refusal is a note after the question; an
// answer that broke off is kept under a rescue ref.
//
// Which requests are to models is told by the path (providers.Recognize); others
// pass. Of the headers of an answer only its id is kept, of a request nothing.
package recorder
