package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"

	"github.com/berth-dev/berth/core/domain"
)

// childRole makes this test binary play another process instead of running
// tests.
const childRole = "SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := childRoles()[role](os.Args[1:]); err != nil {
			fmt.Println("error:", domain.CodeOf(err), err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// childRoles are what a child can do. Each tells on its standard output how
// far it is, one word a line, and is led by its standard input.
func childRoles() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"start":   childStart,
		"append":  childAppend,
		"hold":    childHold,
		"lock":    childLock,
		"upgrade": childUpgrade,
	}
}

// childStart opens a store and closes it: PATH.
func childStart(args []string) error {
	s, err := Open(context.Background(), Config{Path: args[0]})
	if err != nil {
		return err
	}
	fmt.Println("started")
	return s.Close()
}

// childAppend appends three records at a time to one session and tells the
// position after each: PATH SESSION COUNT.
func childAppend(args []string) error {
	ctx := context.Background()
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	s, err := Open(ctx, Config{Path: args[0]})
	if err != nil {
		return err
	}
	id := domain.SessionID(args[1])
	if err := s.Acquire(ctx, id); err != nil {
		return err
	}
	pos := domain.Seq(0)
	for _, err := range s.Records(ctx, id, 0) {
		if err != nil {
			return err
		}
		pos++
	}
	for i := 0; i < count; i++ {
		if pos, err = s.Append(ctx, id, pos, numbered(pos, 3)...); err != nil {
			return err
		}
		fmt.Println(pos)
	}
	return s.Close()
}

// numbered returns n records that hold their own positions.
func numbered(after domain.Seq, n int) []domain.Record {
	recs := make([]domain.Record, n)
	for i := range recs {
		recs[i] = domain.TitleSet{Title: fmt.Sprint(int(after) + i + 1)}
	}
	return recs
}

// childHold takes a session and keeps it until its input ends: PATH SESSION.
func childHold(args []string) error {
	s, err := Open(context.Background(), Config{Path: args[0]})
	if err != nil {
		return err
	}
	if err := s.Acquire(context.Background(), domain.SessionID(args[1])); err != nil {
		return err
	}
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// childLock keeps the write lock of a file, as a foreign program would, until
// its input ends: PATH.
func childLock(args []string) error {
	conn, err := rawConn(args[0])
	if err != nil {
		return err
	}
	if _, err := conn.Exec("BEGIN EXCLUSIVE"); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// childUpgrade opens a store with one more step than there is: PATH SQL.
func childUpgrade(args []string) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	s, err := open(context.Background(), Config{Path: args[0]}.withDefaults(), append(steps, testStep(args[1])))
	if err != nil {
		return err
	}
	fmt.Println("started")
	return s.Close()
}

func testStep(sql string) migration {
	steps, _ := migrations()
	return migration{version: len(steps) + 1, name: "test", sql: sql}
}

// rawConn opens a database past the store, with one connection.
func rawConn(path string) (*sqlx.DB, error) {
	db, err := sqlx.Open("sqlite", dsn(path, "rw", "busy_timeout(5000)"))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// child is a running child process.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	ended bool
}

func startChild(t testing.TB, role string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startCommand(t, exec.Command(exe, args...), role)
}

func startCommand(t testing.TB, cmd *exec.Cmd, role string) *child {
	t.Helper()
	cmd.Env = append(os.Environ(), childRole+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(c.kill)
	return c
}

// line reads the child's next line, "" at its end.
func (c *child) line() string {
	if !c.out.Scan() {
		return ""
	}
	return c.out.Text()
}

func (c *child) want(line string) {
	c.t.Helper()
	if got := c.line(); got != line {
		c.t.Fatalf("the child said %q, want %q", got, line)
	}
}

// kill ends the child with SIGKILL and reaps it.
func (c *child) kill() {
	if !c.ended {
		c.ended = true
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// finish lets the child end by itself and returns what it said last.
func (c *child) finish() string {
	c.t.Helper()
	c.in.Close()
	var said []string
	for c.out.Scan() {
		said = append(said, c.out.Text())
	}
	c.ended = true
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("the child ended with %v: %s", err, strings.Join(said, "; "))
	}
	if len(said) == 0 {
		return ""
	}
	return said[len(said)-1]
}

func openAt(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustCreate(t testing.TB, s *Store, n int) domain.SessionID {
	t.Helper()
	if err := s.Create(t.Context(), row(n)); err != nil {
		t.Fatalf("create: %v", err)
	}
	return row(n).ID
}

// wantNumbered checks a journal written with numbered and returns its length.
func wantNumbered(t testing.TB, s *Store, id domain.SessionID) int {
	t.Helper()
	n := 0
	for e, err := range s.Records(t.Context(), id, 0) {
		if err != nil {
			t.Fatalf("records: %v", err)
		}
		n++
		if want := (domain.TitleSet{Title: fmt.Sprint(n)}); int(e.Seq) != n || e.Record != domain.Record(want) {
			t.Fatalf("position %d holds %v at place %d", e.Seq, e.Record, n)
		}
	}
	return n
}

// wantSound runs SQLite's own full check.
func wantSound(t testing.TB, path string) {
	t.Helper()
	db, err := rawConn(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var found []string
	if err := db.Select(&found, "PRAGMA integrity_check"); err != nil || len(found) != 1 || found[0] != "ok" {
		t.Errorf("integrity check: %v, %v", found, err)
	}
}

// eventually waits for something that no event tells of.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
	}
}
