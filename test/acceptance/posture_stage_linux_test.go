package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stageMarker makes this test binary a machine that lacks something: it takes
// it away from itself and becomes another program.
const stageMarker = "berth-test-stage"

// What a machine can lack.
const (
	noLandlock   = "landlock"    // the kernel was built without
	noNamespaces = "userns"      // making user namespaces is refused, as in a container
	namespacesUp = "userns-used" // there may be no more user namespaces: user.max_user_namespaces is 0
	oldBwrap     = "bwrap-old"   // bubblewrap is there, and too old
)

// stage is a command that runs program as a user on a machine that lacks
// something; lacks is a list with commas. Only root can set it up.
func stage(lacks string, uid int, program string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{stageMarker, lacks, fmt.Sprint(uid), program}, args...)...)
	if strings.Contains(lacks, namespacesUp) {
		all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true,
		}
	}
	return cmd
}

// becomeStage becomes another program if this process was started as a stage.
func becomeStage() {
	if len(os.Args) > 4 && os.Args[1] == stageMarker {
		uid, err := strconv.Atoi(os.Args[3])
		if err != nil {
			os.Exit(125)
		}
		stageMain(os.Args[2], uid, os.Args[4:])
	}
}

// stageMain is the stage. It does not return.
func stageMain(lacks string, uid int, argv []string) {
	runtime.LockOSThread() // what follows is this thread's until it becomes the program
	die := func(what string, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "stage: %s: %v\n", what, err)
			os.Exit(125)
		}
	}
	list := strings.Split(lacks, ",")
	has := func(what string) bool {
		for _, l := range list {
			if l == what {
				return true
			}
		}
		return false
	}
	if has(namespacesUp) {
		die("sysctl", os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
	}
	if has(oldBwrap) {
		die("unshare", unix.Unshare(unix.CLONE_NEWNS))
		die("private", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		die("tmpfs", unix.Mount("tmpfs", "/usr/local/bin", "tmpfs", 0, "mode=755"))
		die("bwrap", os.WriteFile("/usr/local/bin/bwrap", []byte("#!/bin/sh\necho bubblewrap 0.8.0\n"), 0o755))
	}
	if uid != 0 {
		die("setgroups", syscall.Setgroups(nil))
		die("setgid", syscall.Setgid(uid))
		die("setuid", syscall.Setuid(uid))
	}
	die("filter", refuse(has(noLandlock), has(noNamespaces)))
	die(argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}

// refuse installs a filter for this thread and all that comes of it.
func refuse(landlock, namespaces bool) error {
	if !landlock && !namespaces {
		return nil
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(errno syscall.Errno) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	unless := func(op uint16, k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jf: skip}
	}
	prog := []unix.SockFilter{load(0)} // the number of the call
	if landlock {
		prog = append(prog, unless(unix.BPF_JEQ, unix.SYS_LANDLOCK_CREATE_RULESET, 1), answer(unix.ENOSYS))
	}
	if namespaces {
		prog = append(prog, unless(unix.BPF_JEQ, unix.SYS_CLONE3, 1), answer(unix.ENOSYS))
		for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
			// Skips to the next call's number, which has to be loaded again.
			prog = append(prog, load(0), unless(unix.BPF_JEQ, call, 3), load(16), unless(unix.BPF_JSET, unix.CLONE_NEWUSER, 1), answer(unix.EPERM))
		}
	}
	prog = append(prog, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// giveAway makes a directory and all in it a user's, and the way to it open.
func giveAway(t *testing.T, dir string, uid int) {
	t.Helper()
	for up := filepath.Dir(dir); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}
