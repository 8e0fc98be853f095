// Package wire is the seam between the dialects and package providers: what a
// dialect's author uses, and what all dialects share.
//
// A dialect is a [Dialect] value: functions that read responses, write requests,
// read requests back and say what a request body holds.
//
//	Reading a response   [ResponseReader], [BlockWriter], [BlockBuilder], [TokenCounts], [NewAPIError];
//	                     [FieldAccumulator] and [ValueAccumulator] for members that no block stands for
//	Writing a request    [Target.Owns], [Target.CanOpen], [MessageBuilder] or [ResultQueue], [EncodeBlocks],
//	                     [Target.NativeJSON], [EncodeTools], [SetCommon], [InlineData], [SafeCallID],
//	                     [Target.FinishBody]
//	Reading a request    [MessageReader], [MessageList], [Target.DecodeAssistant], [InRole], [DecodeCommon],
//	                     [DecodeTools], [Target.DecodeMessages]
//	Checking a request   [OutlineParts], [OutlineMessages] or [OutlineItems]; [Rule], [Checker]
//
// A [Target] is one model of one provider in a dialect; its [Quirks] are where the
// provider's servers differ from the others that speak the dialect. models.go has
// tables of what is known of models by their names. The package sends nothing and
// knows no vendor's address: that is package providers.
package wire
