// Package acceptance plays conversations with Berth. Each testdata/*.txtar is
// one: a comment that says what it proves and which rule asks for it, and the
// sections
//
//	modes     the modes it runs in, if not in all ("inproc", "stdio")
//	model     what the scripted model does (adapters/llm/scripted)
//	config    further settings, TOML; agents and providers may be set here
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
// $CONFIG the configuration directory. Monitors (monitor.go) watch every run.
package acceptance
