package domain

// ClientInfo is what a client said it is and can do, free of any protocol.
type ClientInfo struct {
	Name    string
	Title   string
	Version string

	ReadFiles    bool // serves reads from its editor buffers
	WriteFiles   bool // takes writes into its editor buffers
	Terminals    bool
	Notices      bool
	Compaction   bool
	ElicitForm   bool
	ElicitURL    bool
	BoolOptions  bool
	LoginInShell bool // can run a terminal sign-in
	LoginCommand bool // can run a sign-in that is given as a whole command
	Subagents    bool

	// Rights are what it may do here, which it did not say itself.
	Rights *Rights
}
