package bootstrap_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/bootstrap"
)

// An App with a store of one's own, serving one connection.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "berth-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg, err := bootstrap.LoadConfig(bootstrap.LoadOptions{ConfigDir: dir, DataDir: filepath.Join(dir, "data"), Home: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	app, err := bootstrap.New(cfg, bootstrap.WithStore(memory.New(time.Now)), bootstrap.WithLog(io.Discard))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Stop(context.Background())
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n")
	var out strings.Builder
	if err := app.Serve(context.Background(), jsonrpc.NewStdio(in, &out, 0)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(out.String(), `"protocolVersion":1`))
	// Output: true
}
