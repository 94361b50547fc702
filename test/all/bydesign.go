package main

import "regexp"

// design is a kind of test that has nothing to prove where it skips itself. It
// is not counted as left out.
type design struct {
	name   *regexp.Regexp // of "package.Test/subtest"
	reason string
}

// designs lists them; whoever adds a line says why nothing is lost.
func designs() []design {
	return []design{
		{
			regexp.MustCompile(`/adapters/memory\.TestStore/`),
			"the memory store does not outlive its process, so the suite's durability cases ask nothing of it",
		},
		{
			regexp.MustCompile(`/core/services/\w+\.Test\w+_Conformance/`),
			"a fake in memory cannot be reopened, shared, crashed or stuck; the adapters that can skip none of it",
		},
		{
			regexp.MustCompile(`/adapters/ws\.TestFrames/[^/]+/half-close$`),
			"a WebSocket ends in both directions at once",
		},
		{
			regexp.MustCompile(`/adapters/(fs|exec)\.TestTools/\w+/tool-run-stuck$`),
			"a tool that waits for nothing cannot be made to hang; read_file and shell wait and are made to",
		},
		{
			regexp.MustCompile(`/bootstrap\.TestSandbox_ConformanceWithoutAHelper/\w+/sandbox-stuck$`),
			"where nothing can be confined nothing is tried, so nothing can hang",
		},
		{
			regexp.MustCompile(`/adapters/exec\.TestHost$`),
			"it is a host that TestHostKilled starts and kills",
		},
		{
			regexp.MustCompile(`/adapters/exec(/sandbox)?\.Test[^/]+/(.+/)?bubblewrap`),
			"bubblewrap 0.12.0, which the sandbox asks for, is newer than most systems'; how it is called is tested as text and with stand-ins",
		},
		{
			regexp.MustCompile(`_Allocations$`),
			"the race detector allocates by itself; these run once more without it",
		},
		{
			regexp.MustCompile(`/adapters/exec/sandbox\.Test(AsUser|GoBuild|Work|Leftovers|Limits|MemoryLimit|Escapes|HostKilled|MadeAndUndone|Git|ExitCodesAndSignals)$`),
			"the race detector makes the many processes they start slow and large; they run once more without it",
		},
		{
			regexp.MustCompile(`/bootstrap/internal/config\.TestLoad_Obstacles/not_readable$|/adapters/fs\.TestSweep_Unreadable$`),
			"nothing is unreadable to root",
		},
		{
			regexp.MustCompile(`/adapters/exec/sandbox\.Test|/adapters/exec\.Test.*(Boxed|Sandboxed)|/test/acceptance\.Test(Attacks|NothingStays|Posture|AsUser)`),
			"a kernel or a user that cannot build the sandbox has nothing to hold; what is said then is tested with abilities taken away",
		},
	}
}

// skippedByDesign returns the reason of the design that covers a test.
func skippedByDesign(name string) (reason string, ok bool) {
	for _, d := range designs() {
		if d.name.MatchString(name) {
			return d.reason, true
		}
	}
	return "", false
}
