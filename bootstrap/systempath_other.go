//go:build !unix

package bootstrap

// systemPath returns nothing: no program is known by its place here.
func systemPath() []string { return nil }
