package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/bootstrap"
)

var oneWrites = flag.Int("onewrites", 200, "how often a prompt and its cancel are sent in one write")

// TestOneWrite_CancelIsNeverLost sends a prompt and its cancel in one write,
// again and again: each prompt is answered "cancelled", once, and nothing of
// its turn follows the answer.
func TestOneWrite_CancelIsNeverLost(t *testing.T) {
	s := &scenario{}
	s.model = "--- next always\ntext \"tick\"\nhang\n"
	t.Run("stdio", func(t *testing.T) {
		w := s.prepare(t)
		cmd := exec.Command(binary, "acp", "--config-dir", w.config, "--data-dir", w.data)
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
		cancelInOneWrite(t, in, out, w.work, *oneWrites)
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	t.Run("in process", func(t *testing.T) { // with -race, the product's own goroutines are watched
		w := s.prepare(t)
		cfg, err := bootstrap.LoadConfig(bootstrap.LoadOptions{ConfigDir: w.config, DataDir: w.data, Home: w.home})
		if err != nil {
			t.Fatal(err)
		}
		app, err := bootstrap.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		toAgent, in := io.Pipe()
		out, fromAgent := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- app.Serve(context.Background(), jsonrpc.NewStdio(toAgent, fromAgent, 0)) }()
		cancelInOneWrite(t, in, out, w.work, *oneWrites)
		in.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := app.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}

func cancelInOneWrite(t *testing.T, in io.Writer, out io.Reader, work string, times int) {
	t.Helper()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	type frame struct {
		ID     json.RawMessage `json:"id"`
		Error  json.RawMessage `json:"error"`
		Method string          `json:"method"`
		Params struct {
			Update struct {
				MessageID string `json:"messageId"`
			} `json:"update"`
		} `json:"params"`
		Result struct {
			SessionID  string `json:"sessionId"`
			StopReason string `json:"stopReason"`
			Meta       struct {
				Berth struct {
					TurnID string `json:"turnId"`
				} `json:"berth"`
			} `json:"_meta"`
		} `json:"result"`
	}
	ended := map[string]bool{}
	await := func(id string) frame {
		for lines.Scan() {
			var f frame
			if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
				t.Fatalf("not JSON: %s", lines.Bytes())
			}
			if turn, _, ok := strings.Cut(f.Params.Update.MessageID, "-m"); ok && ended[turn] {
				t.Fatalf("an update of a turn after its response: %s", lines.Bytes())
			}
			if f.Method == "" {
				if string(f.ID) != id {
					t.Fatalf("want the answer to %s, got %s", id, lines.Bytes())
				}
				return f
			}
		}
		t.Fatalf("no answer to %s: %v", id, lines.Err())
		return frame{}
	}
	send := func(text string) {
		if _, err := io.WriteString(in, text); err != nil {
			t.Fatal(err)
		}
	}
	send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1}}` + "\n")
	await(`"i"`)
	send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`+"\n", work))
	sid := await(`"n"`).Result.SessionID
	for n := range times {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"go"}]}}`+"\n"+
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", n, sid, sid))
		f := await(fmt.Sprint(n))
		if f.Error != nil || f.Result.StopReason != "cancelled" {
			t.Fatalf("prompt %d was answered %q, error %s; its cancel was lost", n, f.Result.StopReason, f.Error)
		}
		ended[f.Result.Meta.Berth.TurnID] = true
	}
	t.Logf("%d prompts with their cancels: none lost, nothing late", times)
}
