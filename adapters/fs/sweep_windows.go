package fs

// listable opens the directory name so that it can be listed; "." is d
// itself. errIsLink or errNotDir when it is not one.
func (d *dir) listable(name string) (*dir, error) {
	if name == "." {
		return d.again()
	}
	return d.sub(name)
}

// slurp reads the regular file name into buf, or into a larger one. judge is
// told what was opened before a byte is read, and again with the first bytes
// of it; an error from it ends the reading.
func (d *dir) slurp(name string, buf []byte, judge func(i info, head []byte) error) ([]byte, error) {
	f, i, err := d.open(name)
	if err != nil {
		return buf[:0], err
	}
	defer func() { _ = f.Close() }()
	if !i.mode.IsRegular() {
		return buf[:0], errMoved
	}
	return fill(buf, i, judge, f.Read)
}
