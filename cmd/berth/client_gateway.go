package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cmd/internal/bridgecmd"
)

// checkGateway says what does not go together with a gateway.
func (f clientFlags) checkGateway(cmd *cobra.Command, args []string) error {
	switch given := cmd.Flags().Changed; {
	case !given("url") && f.takeOver:
		return usage("--take-over is for a session of the gateway that --url names")
	case !given("url") && given("token-file"):
		return usage("--token-file is for the gateway that --url names")
	case !given("url"):
		return nil
	case f.takeOver && f.session == "":
		return usage("--take-over is for the session that --session names")
	case f.url == "":
		return usage("--url is empty")
	case given("token-file") && f.tokenFile == "":
		return usage("--token-file is empty")
	case len(args) > 0:
		return usage("--url names a gateway and -- an agent to start; give one of them")
	case f.model != "":
		return usage(`--model is for "berth acp"; a gateway's agents have their own, so use --agent`)
	}
	return nil
}

// clientWait is how long the client looks for a gateway: somebody waits for it.
const clientWait = 5 * time.Second

// bridgeArgs are the arguments by which this program is the bridge to the
// gateway.
func (f clientFlags) bridgeArgs() []string {
	args := []string{"bridge", "--url", f.url, "--wait", clientWait.String(), "--" + bridgecmd.OutagesFlag}
	if f.tokenFile != "" {
		args = append(args, "--token-file", f.tokenFile)
	}
	if f.verbose {
		args = append(args, "--verbose")
	}
	return args
}
