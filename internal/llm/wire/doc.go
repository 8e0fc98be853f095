// Package wire defines what a dialect is, and has the code that all dialects share.
// Package providers uses it to send requests; the author of a dialect uses it to write one.
//
// A dialect is a [Dialect] value: functions that decode responses, encode requests,
// decode requests and list the items of a request body.
//
//	Reading a response   [ResponseReader], [BlockWriter], [BlockBuilder], [TokenCounts], [NewAPIError];
//	                     [FieldAccumulator] and [ValueAccumulator] for members that have no block
//	Writing a request    [Target.Owns], [Target.CanOpen], [MessageBuilder] or [ResultQueue], [EncodeBlocks],
//	                     [Target.NativeJSON], [EncodeTools], [SetCommon], [InlineData], [SafeCallID],
//	                     [Target.FinishBody]
//	Reading a request    [MessageReader], [MessageList], [Target.DecodeAssistant], [InRole], [DecodeCommon],
//	                     [DecodeTools], [Target.DecodeMessages]; [Continuation] for one that begins like another
//	Checking a request   [OutlineParts], [OutlineMessages] or [OutlineItems]; [Rule], [Checker]
//
// Most callers need only the methods of a [Target], which is one model of one provider with
// its dialect: [Target.Encode], [Target.Decode], [Target.Replay], and the function [Check].
// Its [Quirks] are the differences of the provider's servers from others that use the
// dialect. models.go has tables of facts about models.
//
// The package promises that equal requests give equal bytes, and that decoding a request and
// encoding it again gives the same body. It sends nothing and knows no vendor's address: that
// is the work of package providers.
package wire
