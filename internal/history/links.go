package history

// The names of the links in the origins of a recorded conversation, which tell what conversation it
// came from. Each value except that of LinkCall is the id of a commit.
const (
	LinkCall      = "parent_call"   // id of the tool call that started a sub-agent
	LinkParent    = "parent_commit" // the block of that call
	LinkContinues = "continues"     // the last commit before the client replaced the conversation by a summary
	LinkFork      = "forked_from"   // the commit of another branch that the conversation begins at
)
