//go:build !unix

package config

import "io/fs"

// othersMayWrite reports false: mode bits say nothing about access here.
func othersMayWrite(fs.FileInfo) bool { return false }

// othersMayRead reports false, for the same reason.
func othersMayRead(fs.FileInfo) bool { return false }
