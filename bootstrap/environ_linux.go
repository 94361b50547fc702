package bootstrap

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// forgetVariables blanks the values of variables in the block that the kernel
// shows as /proc/PID/environ. The program keeps its own copy: os.Getenv and
// os.Environ give what they gave. It works on the memory of this process by
// the kernel's own file of it, and on no other.
func forgetVariables(names []string) error {
	block, err := os.ReadFile("/proc/self/environ")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the kernel shows nothing
	case err != nil:
		return err
	}
	values := valuesOf(block, names)
	if len(values) == 0 {
		return nil
	}
	start, end, err := environBlock()
	if err != nil {
		return err
	}
	if end-start != int64(len(block)) {
		return errors.New("the environment's place is not what the kernel shows")
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	for _, v := range values {
		if _, err := mem.WriteAt(make([]byte, v.len), start+int64(v.at)); err != nil {
			return err
		}
	}
	return nil
}

// span is a part of the block.
type span struct{ at, len int }

// valuesOf finds the values of variables that are not empty.
func valuesOf(block []byte, names []string) []span {
	var found []span
	for at := 0; at < len(block); {
		entry := block[at:]
		if end := bytes.IndexByte(entry, 0); end >= 0 {
			entry = entry[:end]
		}
		if name, value, ok := bytes.Cut(entry, []byte("=")); ok && len(value) > 0 && slices.Contains(names, string(name)) {
			found = append(found, span{at + len(name) + 1, len(value)})
		}
		at += len(entry) + 1
	}
	return found
}

// environBlock returns where the block begins and ends: the fields 50 and 51
// of the process's status. The program's name, the second one, may hold blanks
// and parentheses.
func environBlock() (start, end int64, err error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const first, from = 3, 50 // the number of fields[0], of the first one wanted
	if len(fields) < from+2-first {
		return 0, 0, errors.New("the process's status ends early")
	}
	if start, err = strconv.ParseInt(fields[from-first], 10, 64); err == nil {
		end, err = strconv.ParseInt(fields[from+1-first], 10, 64)
	}
	return start, end, err
}
