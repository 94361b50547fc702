package transcript

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// ambientKinds are the updates agents send when they see fit.
var ambientKinds = [...]string{
	"usage_update", "session_info_update", "available_commands_update",
	"config_option_update", "current_mode_update", "prompt_suggestions_update",
}

// skippable reports whether a frame that nobody wants may pass.
func (p *player) skippable(in *incoming) bool {
	if in.bad != nil || in.msg.Kind != jsonrpc.Notification {
		return false
	}
	for _, l := range p.skips {
		if l.Method == in.msg.Method && p.vars.match(l.Value, in.msg.Params) == "" {
			return true
		}
	}
	switch p.mode {
	case Loose:
		return true
	case Strict:
		return false
	}
	return ambient(in.msg)
}

// ambient reports whether m is a notification that agents send when they see
// fit.
func ambient(m jsonrpc.Message) bool {
	u, _ := updateOf(m)
	return strings.HasPrefix(m.Method, "$/") || strings.HasPrefix(m.Method, "_") || slices.Contains(ambientKinds[:], u.Update.Kind)
}

// unwanted is the failure for a frame that comes when none should.
func (p *player) unwanted(in *incoming) error {
	if p.skippable(in) {
		return nil
	}
	return &mismatch{Unmeetable, "nothing should come here", in.data}
}

// quiet demands that nothing comes by itself.
func (p *player) quiet(ctx context.Context) error {
	if p.opts.Settle == nil {
		return p.quietUntilAnswered(ctx)
	}
	if err := p.opts.Settle(ctx); err != nil {
		return err
	}
	for {
		in, err := p.now.try()
		if in == nil {
			if err != nil && !atEnd(err) {
				return fmt.Errorf("the connection failed: %w", err)
			}
			return nil
		}
		if err := p.unwanted(in); err != nil {
			return err
		}
	}
}

// quietMethod is what quiet asks for; nobody has it.
const quietMethod = "_transcript/quiet"

// quietUntilAnswered asks for a method nobody has. Frames arrive in order, so
// what the agent sent before comes before the answer.
func (p *player) quietUntilAnswered(ctx context.Context) error {
	p.probes++
	id := jsonrpc.ID(fmt.Sprintf(`"quiet-%d"`, p.probes))
	if err := p.write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"method":"` + quietMethod + `"}`)); err != nil {
		return err
	}
	for {
		in, err := p.now.next(ctx)
		if err != nil {
			return p.silence(ctx, nil, err)
		}
		if in.bad == nil && in.msg.Kind == jsonrpc.Response && sameID(in.msg.ID, id) {
			return nil
		}
		if err := p.unwanted(in); err != nil {
			return err
		}
	}
}

// awaitEnd waits for the end of the agent's side.
func (p *player) awaitEnd(ctx context.Context) error {
	for {
		in, err := p.now.next(ctx)
		switch {
		case atEnd(err):
			return nil
		case err != nil:
			return p.silence(ctx, nil, err)
		}
		if err := p.unwanted(in); err != nil {
			return err
		}
	}
}
