package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// listen opens what the daemon listens on: what it was given, else what the
// service manager handed over, else gateway.listen.
func listen(ctx context.Context, cfg *Config, given []net.Listener) ([]net.Listener, error) {
	if len(given) == 0 {
		var err error
		if given, err = activated(); err != nil {
			return nil, err
		}
	}
	if len(given) > 0 {
		for _, l := range given {
			if err := checkGiven(cfg, l.Addr()); err != nil {
				for _, l := range given {
					_ = l.Close()
				}
				return nil, err
			}
		}
		return given, nil
	}
	if path, ok := strings.CutPrefix(cfg.Gateway.Listen, "unix:"); ok {
		l, err := listenUnix(path)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Gateway.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program; choose another address with --listen or gateway.listen", cfg.Gateway.Listen)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s may not be listened on by this user; choose a port above 1023 with --listen or gateway.listen", cfg.Gateway.Listen)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is no address of this machine; choose one that it has with --listen or gateway.listen, or 0.0.0.0 for all", cfg.Gateway.Listen)
	case err != nil:
		return nil, fmt.Errorf("gateway.listen: %w", err)
	}
	return []net.Listener{l}, nil
}

// checkGiven holds a listener that was handed over to the rules that
// gateway.listen is checked by.
func checkGiven(cfg *Config, at net.Addr) error {
	g := cfg.Gateway
	switch {
	case !exposed(at):
		return nil
	case g.Auth == "none":
		return fmt.Errorf("gateway.auth = \"none\" is refused on %s, which others can reach", at)
	case g.TLSCert == "" && !g.Insecure:
		return fmt.Errorf("%s can be reached by others without TLS; set gateway.tls_cert and gateway.tls_key, or gateway.insecure = true", at)
	}
	return nil
}

// exposed reports whether others than this machine can reach an address.
func exposed(at net.Addr) bool {
	if at.Network() == "unix" {
		return false
	}
	a, err := netip.ParseAddrPort(at.String())
	return err != nil || !a.Addr().Unmap().IsLoopback()
}

// activated are the listeners that a service manager handed over, as
// sd_listen_fds(3) has it. The variables are removed: they are nothing to our
// children.
func activated() ([]net.Listener, error) {
	const first = 3
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if pid == "" || count == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 64 {
		return nil, fmt.Errorf("LISTEN_FDS is %q, which is no number of sockets", count)
	}
	var list []net.Listener
	for fd := first; fd < first+n; fd++ {
		f := os.NewFile(uintptr(fd), "LISTEN_FD_"+strconv.Itoa(fd))
		l, err := net.FileListener(f) // a copy, which children do not get
		_ = f.Close()
		if err != nil {
			for _, l := range list {
				_ = l.Close()
			}
			return nil, fmt.Errorf("the socket %d that the service manager handed over: %w", fd, err)
		}
		if u, ok := l.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(false) // it is the service manager's
		}
		list = append(list, l)
	}
	return list, nil
}

// listenUnix makes a socket that its owner alone can reach. It is made in a
// directory that nobody else can enter and moved from there, so that there is
// no moment in which others could connect.
func listenUnix(path string) (net.Listener, error) {
	// It is moved to its place, so that the kernel would not notice.
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return nil, fmt.Errorf("gateway.listen: the path %s has %d letters, and nobody can connect to a socket with more than %d; choose a shorter one", path, len(path), most)
	}
	if err := clearSocket(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("gateway.listen: %w", err)
	}
	private, err := os.MkdirTemp(dir, ".b")
	if err != nil {
		return nil, fmt.Errorf("gateway.listen: %w", err)
	}
	defer os.RemoveAll(private)
	born := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: born, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("gateway.listen: %s: %w; its directory may have about 90 letters", path, err)
	}
	l.SetUnlinkOnClose(false)
	err = os.Chmod(born, 0o600)
	if err == nil {
		err = os.Rename(born, path)
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("gateway.listen: %w", err)
	}
	return &socketFile{UnixListener: l, path: path}, nil
}

// clearSocket makes sure that nothing lives at a path. What a dead daemon left
// is replaced; anything else stays.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("gateway.listen: %w", err)
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("gateway.listen: %s is there and is no socket; remove it or choose another path", path)
	}
	if answers(path) {
		return fmt.Errorf("unix:%s is in use by another program; choose another address with --listen or gateway.listen", path)
	}
	return nil
}

// answers reports whether somebody listens on a socket, be it one that has no
// room for another connection at the moment.
func answers(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
	return err == nil || errors.Is(err, syscall.EAGAIN)
}

// socketFile is a listener on a socket that was moved to its place.
type socketFile struct {
	*net.UnixListener
	path string
}

// Addr is where the socket is.
func (s *socketFile) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close closes the listener and removes the socket, unless another has taken
// its place.
func (s *socketFile) Close() error {
	err := s.UnixListener.Close()
	if answers(s.path) { // somebody else's
		return err
	}
	_ = os.Remove(s.path)
	return err
}
