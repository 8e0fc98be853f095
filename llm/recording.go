package llm

import "context"

// keepKey is the key of a context whose answers are kept.
type skipRecordingKey struct{}

// Keep marks a context: whoever asks with it keeps the answers, so that what
// watches the network (package record) need not. Branch.Generate does; a program
// that sends what Branch.Prepare gave should.
func SkipRecording(ctx context.Context) context.Context {
	return context.WithValue(ctx, skipRecordingKey{}, true)
}

// Kept tells whether the answers to what is asked with a context are kept.
func RecordingSkipped(ctx context.Context) bool { return ctx.Value(skipRecordingKey{}) != nil }
