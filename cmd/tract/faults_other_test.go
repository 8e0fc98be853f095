//go:build windows

package main

const faultEnv = "TRACT_TEST_PROGRAM"

func asProgram(string) int { return mainCode() }
