// Package acceptance plays conversations with Berth. Each testdata/*.txtar is
// one: a comment that says what it proves and which rule asks for it, and the
// sections
//
//	modes     the modes it runs in, if not in all ("inproc", "stdio")
//	model     what the scripted model does (adapters/llm/scripted)
//	config    further settings, TOML; agents and providers may be set here
//	unset     variables that the agent is not given, of those that hold canaries
//	warm      a command line that is run before, to fill caches
//	files/…   files of the session's directory before
//	script    the conversation (adapters/jsonrpc/transcript)
//	want/…    files of the session's directory afterwards
//	log       texts that must stand in the log, one a line
//
// Modes:
//
//	inproc    bootstrap.New with pipes, in a bubble of fake time, store in memory
//	stdio     the built binary, store in SQLite, real time
//
// The variable $WORK is the session's directory, $DATA the data directory and
// $CONFIG the configuration directory, in scripts, models and settings.
// Monitors (monitor_test.go) watch every run. Every run is given secrets, in its
// environment, its configuration and the files of its user (canary_test.go):
// none of them may turn up in a frame, in the log, in a file, or in what the
// scripted model is asked (leaks_test.go).
package acceptance
