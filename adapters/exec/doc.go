// Package exec runs commands for a session: the tools shell, shell_output and
// shell_kill.
//
// A call is looked at once, in Prepare: the line is analysed, its directory is
// opened, the scripts of the project that it runs are hashed, and what comes
// out is the plan that the permission decision is made on. Run starts exactly
// that: the same bytes in the same directory, in a sandbox that opens what the
// decision allowed, and nothing if something changed in between.
//
// A command belongs to a job from its start until nothing of it lives. The job
// ends with the command's own process, never at the end of its output, which
// something left behind could hold open. What is left behind is ended with it.
// Both streams go through one pipe, as on a terminal, because two would lose
// the order of what was written. The output is read all the time, cleaned, and
// kept at both ends in memory and as a whole in a file of the agent's
// workspace.
//
// How commands are confined is the business of a Confiner (sandbox), and what
// a line means that of an analyser (shellpolicy).
//
// Read next: source.go, prepare.go, run.go, job.go.
package exec
