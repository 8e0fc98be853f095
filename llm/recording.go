package llm

import "context"

// skipRecordingKey is the key of a context whose responses need no recording.
type skipRecordingKey struct{}

// SkipRecording marks a context: the caller keeps the responses to requests with this
// context, so that what watches the network (package recorder) need not record them.
// Branch.Generate marks its context; a program that sends what Branch.Prepare returned
// should too.
func SkipRecording(ctx context.Context) context.Context {
	return context.WithValue(ctx, skipRecordingKey{}, true)
}

// RecordingSkipped reports whether a context was marked by [SkipRecording].
func RecordingSkipped(ctx context.Context) bool { return ctx.Value(skipRecordingKey{}) != nil }
