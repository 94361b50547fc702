package sqlite

// SchemaVersion returns the version of the schema this build writes: the
// number of its migrations.
func SchemaVersion() int {
	steps, err := migrations()
	if err != nil { // the files are embedded; a test reads them
		return 0
	}
	return len(steps)
}
