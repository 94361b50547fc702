// Package acceptance plays conversations with Berth. Each testdata/*.txtar is
// one: a comment that says what it proves and which rule asks for it, and the
// sections
//
//	modes     the modes it runs in, if not in all, and behind a # the reason
//	tokens    tokens of a daemon, one a line: the client that shows it, and what
//	          "berth token create" is told of its rights; the others show one
//	          that may do everything
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
//	daemon    the same binary as a daemon that listens on loopback; every client
//	          of the script is a WebSocket
//	bridge    such a daemon with "berth bridge" in front of it for every client
//
// In the last two, kill and restart are about the daemon: it starts again with
// the next connection and has forgotten nothing but what was in memory. A drop
// loses a client's socket without a goodbye, a cut the sockets below all of
// them; reconnect comes back to the daemon that still runs.
//
// Besides the scripts, random clients are let loose: one after the other and
// side by side on an App (walk_test.go), and many at a time on the sessions of a
// daemon (crowd_test.go), which is whole but for its network, and in a bubble.
// crowd_cases_test.go and crowd_asks_test.go are cases of the same daemon.
//
// The variable $WORK is the session's directory, $DATA the data directory and
// $CONFIG the configuration directory, in scripts, models and settings.
// Monitors (monitor_test.go) watch every run. Every run is given secrets, in its
// environment, its configuration and the files of its user (canary_test.go):
// none of them may turn up in a frame, in the log, in a file, or in what the
// scripted model is asked (leaks_test.go).
package acceptance
