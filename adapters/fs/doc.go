// Package fs is the workspace on disk: it answers for the directories of a
// session (Roots), the file tools (Source) and the files of prompts (Blobs).
//
// There is one resolver, target.go and walk.go, and everything goes through
// it. A session's roots are open directories. A path is walked from one of
// them a component at a time, never following a link by itself: a link is read
// and its text is walked in its place. So checking and opening are the same
// act, the canonical name is known at the end, every directory on the way was
// compared with the forbidden ones by device and inode, and a link that points
// out of the roots, at whatever moment it was put there, leads nowhere.
//
// What a call is going to touch is held open from Prepare to Close: a file to
// read by its descriptor, a file to write by the descriptor of the directory
// it lies in. Files are replaced as a whole, by a new file that is renamed
// over them (replace.go); nothing is ever truncated in place.
//
// On Linux and macOS the walk is openat with O_NOFOLLOW for each component.
// openat2 with RESOLVE_BENEATH would refuse the same paths in one call, but
// tells neither the directories passed, which the forbidden test needs, nor
// the canonical name, which the protected names need, and refuses absolute
// links that stay inside. On Windows each directory is an os.Root.
//
// glob and search go through whole trees, sweep.go: several goroutines read
// directories by their handles, and what they find is taken in the order of the
// paths. Patterns of text are answered by automaton.go where they can be, and
// needle.go says which lines are worth it.
//
// Read next: walk.go, then change.go; for the searching part sweep.go, then
// query.go.
package fs
