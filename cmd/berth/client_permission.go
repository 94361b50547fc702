package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/acpclient"
)

// readKinds are the tool kinds that --permission-policy reads allows.
var readKinds = [...]string{"read", "search", "think"}

// permit answers a permission request by policy or by asking the person.
func (r *client) permit(ctx context.Context, req acpclient.PermissionRequest) acpclient.Choice {
	if !r.flags.json {
		r.view.permission(req)
	}
	policy := r.flags.policy
	if policy == "ask" && !r.tty {
		policy = "none"
	}
	allow := policy == "all" || policy == "reads" && slices.Contains(readKinds[:], req.ToolCall.Kind)
	if policy == "ask" {
		return r.ask(ctx, req)
	}
	kind := "reject_once"
	if allow {
		kind = "allow_once"
	}
	return r.choose(req, kind)
}

// choose picks the offered option of a kind, or cancels when there is none.
func (r *client) choose(req acpclient.PermissionRequest, kind string) acpclient.Choice {
	for _, o := range req.Options {
		if o.Kind == kind {
			if strings.HasPrefix(kind, "reject") {
				r.denied = true
			}
			if !r.flags.json {
				r.view.note(o.Name)
			}
			return acpclient.Choice{OptionID: o.OptionID}
		}
	}
	r.denied = true
	return acpclient.Choice{}
}

// ask shows the options and reads a number.
func (r *client) ask(ctx context.Context, req acpclient.PermissionRequest) acpclient.Choice {
	for {
		for i, o := range req.Options {
			fmt.Fprintf(os.Stderr, "  %d) %s\n", i+1, o.Name)
		}
		fmt.Fprintf(os.Stderr, "choose 1-%d: ", len(req.Options))
		line, err := r.stdin.ReadString('\n')
		if err != nil || ctx.Err() != nil {
			r.denied = true
			return acpclient.Choice{}
		}
		var n int
		if _, err := fmt.Sscanf(line, "%d", &n); err == nil && n >= 1 && n <= len(req.Options) {
			o := req.Options[n-1]
			if strings.HasPrefix(o.Kind, "reject") {
				r.denied = true
			}
			return acpclient.Choice{OptionID: o.OptionID}
		}
		fmt.Fprintln(os.Stderr, "That is none of them.")
	}
}
