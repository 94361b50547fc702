package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// usage is what the fakes count for every complete reply.
var usage = domain.Usage{Input: 1200, Output: 345, Thought: 45, CachedRead: 1000}

// scenes are what the fakes play, by name: the n-th request to a scene's
// address gets its n-th reply.
func scenes() map[string][]porttest.Reply {
	text := func(pieces ...string) (parts []porttest.ReplyPart) {
		for _, p := range pieces {
			parts = append(parts, porttest.SendText(p))
		}
		return parts
	}
	refuse := func(kind porttest.RefusalKind, after string) []porttest.Reply {
		r := porttest.Reply{Refusal: &porttest.Refusal{Kind: kind, Words: "in these words", RetryAfter: after}}
		return []porttest.Reply{r, r, r, r}
	}
	turn := porttest.Reply{Signed: true, Usage: usage, Parts: []porttest.ReplyPart{
		porttest.SendThought("Which files? "), porttest.SendThought("Both — 🌍."), porttest.SendText("Grüße, "), porttest.SendText("I read <both> & 🌉."),
		porttest.SendCall{ID: "call_1", Name: "read_file", Args: `{"path":"ä <1>.txt","deep":{"list":[1,2.5,null,true]}}`, Pieces: 5},
		porttest.SendCall{ID: "call_2", Name: "list_files", Args: `{}`, Pieces: 1},
	}}
	cut := turn
	cut.Grain = 1
	return map[string][]porttest.Reply{
		"turn":     {turn, {Usage: usage, Parts: text("Done.")}},
		"cut":      {cut, {Usage: usage, Parts: text("Done."), Grain: 1}},
		"length":   {{End: porttest.EndLength, Usage: usage, Parts: text("As far as", " this")}},
		"refusal":  {{End: porttest.EndRefusal, Usage: usage, Parts: text("I can")}},
		"fault":    {{End: porttest.EndError, Usage: usage, Parts: text("Half"), Fault: porttest.Refusal{Kind: porttest.Overloaded, Words: "in these words"}}},
		"misfit":   {{End: porttest.EndError, Usage: usage, Parts: text("Half"), Fault: porttest.Refusal{Kind: porttest.BadRequest, Words: "in these words"}}},
		"limited":  append(refuse(porttest.LimitedRate, "1")[:1], porttest.Reply{Usage: usage, Parts: text("Later.")}),
		"key":      refuse(porttest.KeyRefused, ""),
		"forbids":  refuse(porttest.Forbidden, ""),
		"no-model": refuse(porttest.NoSuchModel, ""),
		"too-long": refuse(porttest.TooLong, ""),
		"broken":   refuse(porttest.ServerError, ""),
	}
}

// order asks for a fake that plays a scene.
type order struct {
	Dialect string `json:"dialect"`
	Scene   string `json:"scene"`
}

// address is where a scene is played.
type address struct {
	URL   string `json:"url"`
	Path  string `json:"path"` // of the base URL, such as "/v1"
	Key   string `json:"key"`
	Model string `json:"model"`
}

// problemsPath answers with what a strict provider would have refused of the
// requests so far.
const problemsPath = "/-/problems"

// serve starts a fake for every order it reads, a line of JSON each, and
// answers with its address, a line too. All stop when in ends.
func serve(in io.Reader, out io.Writer) error {
	var running sync.WaitGroup
	var servers []*http.Server
	defer func() {
		for _, s := range servers {
			_ = s.Close()
		}
		running.Wait()
	}()
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		f, ok := fakeOf(o.Dialect)
		replies := scenes()[o.Scene]
		if !ok || replies == nil {
			return fmt.Errorf("there is no dialect %q or no scene %q", o.Dialect, o.Scene)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := &http.Server{Handler: f.handler(replies), ReadHeaderTimeout: time.Minute}
		servers = append(servers, server)
		running.Go(func() { _ = server.Serve(l) })
		if err := answers.Encode(address{URL: "http://" + l.Addr().String(), Path: f.Path, Key: f.secret(), Model: f.Model}); err != nil {
			return err
		}
	}
}

func fakeOf(name string) (fake, bool) {
	for _, f := range fakes() {
		if f.name == name {
			return f, true
		}
	}
	return fake{}, false
}

func (f fake) handler(replies []porttest.Reply) http.Handler {
	server := f.New().Replies(replies...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != problemsPath {
			server.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(append([]string{}, server.Problems()...))
	})
}
