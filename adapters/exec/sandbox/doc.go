// Package sandbox runs commands that nobody trusts: whatever a command does,
// it reads and writes only what its Spec opened, reaches no network that was
// not granted, sees no process but its own, and leaves none behind.
//
// A Sandbox is made once. Posture tries out what works here, once, by running
// a probe that does what must fail; only what was proven is claimed. Command
// prepares one command, Process.Start starts it.
//
// On Linux the command is started by a helper, which is our own binary run
// again (see IsHelper and Main). The helper builds the command's view of the
// file system, gives up every right, and stays as the first process of the
// command's own world, so that the kernel ends everything in it when the
// helper ends. The helper ends when the command does, when the host says so,
// and when the host is gone.
//
// What a command sees is a list of what it needs, not everything minus a
// list: the directories of the system, a few files of /etc, the tool chains
// that PATH names, caches of tool chains as copies, the roots of the session
// and what the policy opened. A list of what is hidden would have to know
// every secret of the machine.
package sandbox
