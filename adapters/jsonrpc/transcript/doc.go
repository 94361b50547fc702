// Package transcript plays conversations with an ACP agent from a script and
// records conversations as scripts. Acceptance tests, the probe command and
// bug reports use the same language.
//
// # Lines
//
// A script is read line by line. Blank lines and lines that start with "#" say
// nothing. JSON may go on over several lines; it ends where its brackets do.
//
//	> method @label {params}     request from the client; label and params may be left out
//	>! method {params}           notification from the client
//	>= @label {result}           answer to the agent's request of that label
//	>= @label error {error}      the same, an error
//	>> text                      exactly this text as one line, well-formed or not
//	raw "text\n"                 exactly these bytes, a Go string, without a newline behind
//	< @label {result}            the agent answers the request of that label
//	< @label error {error}       the same, with an error
//	<! method {params}           notification from the agent
//	<? method @label {params}    request from the agent
//	says "text"                  agent_message_chunk notifications that together say text
//	thinks "text"                the same of agent_thought_chunk
//	any { … }                    the lines between the braces, in any order
//	quiet                        nothing more comes by itself
//
// Without a label, "<" means the one unlabelled request that is still open,
// and ">=" the one unlabelled "<?". In place of a label "#" and a JSON value
// name an id as it is on the wire: "> m #\"x\" {}", "< #null error {…}",
// ">= #7 {}". Inside any, a group in braces of its own keeps its order; it may
// hold ">=", ">" and ">!" lines, which are sent when the group gets there.
//
// Words about the connection:
//
//	eof          the client ends its side; the agent may go on
//	end          the agent ends its side
//	drop         the client's connection is lost, without a goodbye where there is one
//	cut          the network is cut below the client, which may not notice
//	kill         the agent's process is killed
//	restart      a new connection, to a new process where the runner can make one
//	reconnect    a new connection, to the same process where it serves several
//	exit 0       the agent's process has ended with this status
//	client NAME  the following lines are those of another client
//	hold         the client stops reading;  release: it reads again
//	after 90s    time passes (where the runner can make it)
//
// # Matching
//
// A pattern is JSON. Objects match by subset: members not named are ignored.
// Arrays match exactly, unless the last item is "...", which stands for any
// further items. Numbers match by value. Strings may be special:
//
//	"$name"      captures the value at its first use and must be equal later
//	"…$name…"    the value of a variable inside a text; "$$" is a dollar sign
//	"$@label"    the id of the request of that label
//	"*"          any value, but present
//	"!"          the member is absent
//	"~regexp"    a string the expression finds something in
//	"=text"      this text, whatever it looks like
//
// In lines that are sent, "$name", "$@label" and "$$" are replaced in the same
// way and the others mean themselves. The runner provides variables such as
// $WORK. A line that uses a variable before it has a value is in error.
//
// # What may come between
//
// Frames are taken strictly in the order in which they arrive. A frame that is
// not what the script wants next is a failure, at once. Only ambient
// notifications are skipped, because agents send them when they see fit:
// session/update of the kinds usage_update, session_info_update,
// available_commands_update, config_option_update, current_mode_update and
// prompt_suggestions_update, and notifications whose name starts with "$/" or
// "_". An ambient update meets a "<!" line only if that names its kind, so a
// line that matches every update does not catch one by chance. A script may
// change what is skipped:
//
//	strict                   from here on nothing is skipped
//	ambient                  from here on as described above
//	loose                    from here on every notification may be skipped
//	skip method {params}     notifications that match this are skipped as well
//
// Skipped frames still reach the monitors. Requests of the agent, responses
// and frames that are no messages are never skipped. What arrives behind the
// last line is not looked at; end with quiet to demand silence.
//
// # Verdicts
//
// Each frame gives a line one of three verdicts: met, unmet (the frame says
// nothing about it), unmeetable (it can never be met now). So a wrong answer
// fails at once, and only silence waits for the deadline of the context.
//
// Read on in script.go (the language), match.go (patterns), player.go (how it
// is played), record.go (frames, JSONL), convert.go (recording to script).
package transcript
