//go:build !unix

package config

import "io/fs"

// othersMayWrite reports false: mode bits say nothing about access here.
func othersMayWrite(fs.FileInfo) bool { return false }
