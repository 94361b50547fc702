package bootstrap

// openFiles is how many files the process may have open: nothing bounds them.
func openFiles() uint64 { return 0 }
