package transcript

import "encoding/json"

// Op says what a line does.
type Op uint8

// The operations, in the order of the package's description.
const (
	Blank Op = iota
	Comment
	Request // >
	Notify  // >!
	Answer  // >=
	Send    // >>
	Raw
	Response // <
	Update   // <!
	Ask      // <?
	Says
	Thinks
	Any
	Group // inside Any
	Quiet
	EOF
	End
	Drop
	Cut
	Kill
	Restart
	Reconnect
	Exit
	Client
	Hold
	Release
	After
	Strict
	Ambient
	Loose
	Skip
)

// words are the operations that are written as a word.
var words = map[Op]string{
	Request: ">", Notify: ">!", Answer: ">=", Send: ">>", Raw: "raw",
	Response: "<", Update: "<!", Ask: "<?", Says: "says", Thinks: "thinks",
	Any: "any", Quiet: "quiet", EOF: "eof", End: "end", Drop: "drop", Cut: "cut", Kill: "kill",
	Restart: "restart", Reconnect: "reconnect", Exit: "exit", Client: "client", Hold: "hold", Release: "release",
	After: "after", Strict: "strict", Ambient: "ambient", Loose: "loose", Skip: "skip",
}

// expects reports whether the operation waits for a frame of the agent.
func (op Op) expects() bool { return op >= Response && op <= Thinks }

// sends reports whether the operation sends one message.
func (op Op) sends() bool { return op == Request || op == Notify || op == Answer }

// Line is one statement of a script.
type Line struct {
	N      int // its place in the text, from 1
	Op     Op
	Method string
	Label  string          // without the "@"
	ID     json.RawMessage // given with "#", in place of a label
	Error  bool            // Value is an error object
	Value  json.RawMessage // params, result or error, on one line; nil if left out
	Text   string          // of Comment, Send, Raw, Says, Thinks, Exit, Client, After
	Body   []Line          // of Any and Group

	// ref names the request this line makes or is about: its label, or one
	// made up for an unlabelled request.
	ref string
}

// Script is a sequence of lines. It comes from Parse or FromFrames.
type Script struct {
	Lines []Line
}
