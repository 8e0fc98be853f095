package main

import "github.com/spf13/cobra"

// The groups of commands in the help.
const (
	groupTalk  = "talk"
	groupLook  = "look"
	groupShape = "shape"
	groupStore = "store"
	groupPlumb = "plumbing"
)

// constructor makes a command of one group.
type constructor struct {
	group string
	make  func(*app) *cobra.Command
}

// commands lists all commands of the program but help.
func commands() []constructor {
	return []constructor{
		{groupTalk, newAssistant},
		{groupTalk, newChat},
		{groupTalk, newCommit},
		{groupTalk, newGenerate},
		{groupTalk, newImport},
		{groupTalk, newProxy},
		{groupTalk, newReasoning},
		{groupTalk, newReplay},
		{groupTalk, newRescue},
		{groupTalk, newSystem},
		{groupTalk, newToolCall},
		{groupTalk, newToolResult},
		{groupTalk, newUser},
		{groupLook, newBisect},
		{groupLook, newBlame},
		{groupLook, newCheck},
		{groupLook, newCompile},
		{groupLook, newDiff},
		{groupLook, newGrep},
		{groupLook, newLog},
		{groupLook, newScan},
		{groupLook, newShow},
		{groupLook, newStatus},
		{groupLook, newUsage},
		{groupLook, newWhy},
		{groupShape, newAnnotate},
		{groupShape, newBranch},
		{groupShape, newCherryPick},
		{groupShape, newCompress},
		{groupShape, newEdit},
		{groupShape, newExpand},
		{groupShape, newMerge},
		{groupShape, newOp},
		{groupShape, newPin},
		{groupShape, newRedo},
		{groupShape, newReflog},
		{groupShape, newReset},
		{groupShape, newRevert},
		{groupShape, newSkip},
		{groupShape, newSwitch},
		{groupShape, newTag},
		{groupShape, newUndo},
		{groupStore, newBackup},
		{groupStore, newCompletion},
		{groupStore, newConfig},
		{groupStore, newDemo},
		{groupStore, newDoctor},
		{groupStore, newEnvironment},
		{groupStore, newFsck},
		{groupStore, newGC},
		{groupStore, newInit},
		{groupStore, newMan},
		{groupStore, newProfile},
		{groupStore, newPurge},
		{groupStore, newRecover},
		{groupStore, newVerify},
		{groupStore, newVersion},
		{groupPlumb, newCatFile},
		{groupPlumb, newDecode},
		{groupPlumb, newHashObject},
		{groupPlumb, newMergeBase},
		{groupPlumb, newRevParse},
	}
}
