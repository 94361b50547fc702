package porttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// ToolFixture is one tool in a fresh world of its own.
type ToolFixture struct {
	Tool ports.Tool
	// Call is a call that succeeds, once, in this world.
	Call domain.ToolCall
	// Wrong are arguments that must be refused, by what is wrong with them.
	// The suite adds what is wrong for every tool.
	Wrong map[string]string
	// State describes everything a call could change.
	State func() string
	// Stuck, if the tool can wait for something, is a call whose Run does not
	// end by itself. Started is closed when it waits.
	Stuck   *domain.ToolCall
	Started <-chan struct{}
}

// ToolHarness makes fixtures.
type ToolHarness struct {
	Open func(TB) ToolFixture
}

// Tool is the conformance suite of ports.Tool and ports.Prepared.
func Tool(t TB, h ToolHarness) {
	t.Helper()
	runChecks(t, h, toolChecks())
}

func toolChecks() []check[ToolHarness] {
	return []check[ToolHarness]{
		{"tool-spec", "providers refuse a whole request over one bad name or schema", toolSpec},
		{"tool-spec-stable", "a conversation outlives many looks at the same tool", toolSpecStable},
		{"tool-plan", "the person and the permission decision see what will be touched", toolPlan},
		{"tool-plan-stable", "what was approved is what is run", toolPlanStable},
		{"tool-prepare-harmless", "a call that is refused must have done nothing", toolPrepareHarmless},
		{"tool-run", "the model gets an answer it can use", toolRun},
		{"tool-run-once", "an effect is never repeated", toolRunOnce},
		{"tool-read-only", "calls of read-only tools run side by side and unasked", toolReadOnly},
		{"tool-run-cancelled", "nothing new begins after a cancel", toolRunCancelled},
		{"tool-run-stuck", "a cancel is answered however the tool hangs", toolRunStuck},
		{"tool-wrong-args", "a wrong call is told how to mend itself, and does nothing", toolWrongArgs},
	}
}

func toolSpec(t TB, h ToolHarness) {
	s := h.Open(t).Tool.Spec()
	if s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || len(s.Name) > 64 || s.Name[0] >= '0' && s.Name[0] <= '9' {
		t.Errorf("name %q is not 1 to 64 of [a-z0-9_], with no digit first", s.Name)
	}
	if len(s.Description) < 20 {
		t.Errorf("description %q does not say what the tool does", s.Description)
	}
	if s.Kind == "" {
		t.Errorf("no kind")
	}
	var schema struct {
		Type       string
		Properties map[string]struct {
			Type        string
			Description string
		}
		Required             []string
		AdditionalProperties *bool
	}
	if err := json.Unmarshal(s.Schema, &schema); err != nil {
		t.Fatalf("the schema is not JSON: %v", err)
	}
	if schema.Type != "object" || schema.Properties == nil {
		t.Errorf("the schema does not describe an object: %s", s.Schema)
	}
	if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Errorf("the schema lets unknown arguments through")
	}
	for name, p := range schema.Properties {
		if p.Type == "" {
			t.Errorf("argument %s has no type", name)
		}
	}
	for _, name := range schema.Required {
		if _, ok := schema.Properties[name]; !ok {
			t.Errorf("required argument %s is not described", name)
		}
	}
}

func toolSpecStable(t TB, h ToolHarness) {
	tool := h.Open(t).Tool
	a, b := tool.Spec(), tool.Spec()
	if a.Name != b.Name || a.Description != b.Description || a.Kind != b.Kind || a.ReadOnly != b.ReadOnly || !bytes.Equal(a.Schema, b.Schema) {
		t.Errorf("two looks at the spec differ: %+v, %+v", a, b)
	}
	if c := h.Open(t).Tool.Spec(); c.Name != a.Name || !bytes.Equal(a.Schema, c.Schema) {
		t.Errorf("the same tool of another session differs: %+v", c)
	}
}

// prepared prepares the good call and closes it with the case, unless the
// case did.
func prepared(t TB, f ToolFixture) ports.Prepared {
	t.Helper()
	p, err := f.Tool.Prepare(t.Context(), f.Call)
	if err != nil {
		t.Fatalf("Prepare of a good call: %v", err)
	}
	return p
}

func closePrepared(t TB, p ports.Prepared) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func toolPlan(t TB, h ToolHarness) {
	f := h.Open(t)
	p := prepared(t, f)
	defer closePrepared(t, p)
	plan := p.Plan()
	if strings.TrimSpace(plan.Title) == "" || plan.Title == f.Tool.Spec().Name {
		t.Errorf("title %q says nothing about this call", plan.Title)
	}
	if plan.Kind == "" {
		t.Errorf("no kind")
	}
	if plan.Access.Tool != f.Tool.Spec().Name {
		t.Errorf("access names the tool %q", plan.Access.Tool)
	}
	if plan.Access.Class == domain.AccessEdit && len(plan.Access.Paths) == 0 {
		t.Errorf("an edit names no path")
	}
	for _, l := range plan.Locations {
		if !absolute(l.Path) || l.Line < 0 {
			t.Errorf("location %+v is not an absolute path with a line from 1", l)
		}
	}
	for _, c := range plan.Content {
		if d, ok := c.(domain.Diff); ok && (!absolute(d.Path) || d.Created && d.OldText != "" || d.OldText == d.NewText) {
			t.Errorf("diff %+v", d)
		}
	}
}

// absolute reports whether a path is absolute on some system.
func absolute(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) || (len(path) > 2 && path[1] == ':')
}

func toolPlanStable(t TB, h ToolHarness) {
	p := prepared(t, h.Open(t))
	defer closePrepared(t, p)
	first := fmt.Sprintf("%+v", p.Plan())
	if again := fmt.Sprintf("%+v", p.Plan()); again != first {
		t.Errorf("two looks at the plan differ:\n%s\n%s", first, again)
	}
	if _, err := p.Run(t.Context(), progress); err != nil {
		t.Fatalf("Run: %v", err)
	}
	if after := fmt.Sprintf("%+v", p.Plan()); after != first {
		t.Errorf("the plan after Run differs:\n%s\n%s", first, after)
	}
}

func progress(domain.ToolProgress) {}

func toolPrepareHarmless(t TB, h ToolHarness) {
	f := h.Open(t)
	before := f.State()
	p := prepared(t, f)
	p.Plan()
	if now := f.State(); now != before {
		t.Errorf("Prepare changed something:\n%s\n%s", before, now)
	}
	closePrepared(t, p)
	if now := f.State(); now != before {
		t.Errorf("Close without Run changed something:\n%s\n%s", before, now)
	}
}

func toolRun(t TB, h ToolHarness) {
	f := h.Open(t)
	p := prepared(t, f)
	r, err := p.Run(t.Context(), progress)
	if err != nil || r.Failed {
		t.Fatalf("Run of a good call: %+v, %v", r, err)
	}
	if strings.TrimSpace(r.Text) == "" {
		t.Errorf("the result has no text for the model")
	}
	if r.RawOutput != nil && !json.Valid(r.RawOutput) {
		t.Errorf("raw output is not JSON: %s", r.RawOutput)
	}
	closePrepared(t, p)
}

func toolRunOnce(t TB, h ToolHarness) {
	f := h.Open(t)
	p := prepared(t, f)
	defer closePrepared(t, p)
	if _, err := p.Run(t.Context(), progress); err != nil {
		t.Fatalf("Run: %v", err)
	}
	after := f.State()
	if r, err := p.Run(t.Context(), progress); err == nil && !r.Failed {
		t.Errorf("a second Run succeeded: %+v", r)
	}
	if now := f.State(); now != after {
		t.Errorf("a second Run changed something:\n%s\n%s", after, now)
	}
}

func toolReadOnly(t TB, h ToolHarness) {
	f := h.Open(t)
	p := prepared(t, f)
	defer closePrepared(t, p)
	class := p.Plan().Access.Class
	if !f.Tool.Spec().ReadOnly {
		if class == domain.AccessRead {
			t.Errorf("the tool is not read-only, its effect has class %d", class)
		}
		return
	}
	if class != domain.AccessRead && class != domain.AccessNone {
		t.Errorf("a read-only tool has access class %d", class)
	}
	before := f.State()
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- runOnce(t.Context(), f) }() // joined below: each sends once
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Errorf("side by side: %v", err)
		}
	}
	if now := f.State(); now != before {
		t.Errorf("a read-only tool changed something:\n%s\n%s", before, now)
	}
}

func runOnce(ctx context.Context, f ToolFixture) error {
	p, err := f.Tool.Prepare(ctx, f.Call)
	if err != nil {
		return err
	}
	r, err := p.Run(ctx, progress)
	if err == nil && r.Failed {
		err = errors.New(r.Text)
	}
	return errors.Join(err, p.Close())
}

func toolRunCancelled(t TB, h ToolHarness) {
	f := h.Open(t)
	p := prepared(t, f)
	defer closePrepared(t, p)
	before := f.State()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(domain.CancelledByClient)
	r, err := p.Run(ctx, progress)
	if err == nil && !r.Failed {
		t.Errorf("Run under an ended context succeeded: %+v", r)
	}
	if err != nil && !errors.Is(err, domain.CancelledByClient) {
		t.Errorf("the error hides why the context ended: %v", err)
	}
	if now := f.State(); now != before {
		t.Errorf("Run under an ended context changed something:\n%s\n%s", before, now)
	}
}

func toolRunStuck(t TB, h ToolHarness) {
	f := h.Open(t)
	if f.Stuck == nil {
		t.Skipf("this tool waits for nothing")
	}
	p, err := f.Tool.Prepare(t.Context(), *f.Stuck)
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	defer closePrepared(t, p)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() { // joined by done, or left behind by an adapter that fails here
		defer close(done)
		if r, err := p.Run(ctx, progress); err == nil && !r.Failed {
			t.Errorf("a cancelled call succeeded: %+v", r)
		}
	}()
	<-f.Started
	cancel(domain.CancelledByClient)
	select {
	case <-done:
	case <-time.After(hangLimit):
		t.Errorf("Run goes on %v after its context ended", hangLimit)
	}
}

func toolWrongArgs(t TB, h ToolHarness) {
	wrong := map[string]string{
		"no object":        `[]`,
		"null":             `null`,
		"no JSON":          `{"`,
		"nothing":          ``,
		"unknown argument": `{"berth_no_such_argument":1}`,
	}
	f := h.Open(t)
	for what, args := range f.Wrong {
		wrong[what] = args
	}
	before := f.State()
	for _, what := range slices.Sorted(maps.Keys(wrong)) {
		call := f.Call
		call.Args = []byte(wrong[what])
		p, err := f.Tool.Prepare(t.Context(), call)
		if err == nil {
			t.Errorf("%s (%s): accepted", what, call.Args)
			closePrepared(t, p)
			continue
		}
		var e *domain.Error
		if !errors.As(err, &e) || len(e.Msg) < 10 {
			t.Errorf("%s: no sentence for the model in %v", what, err)
			continue
		}
		switch e.Code {
		case domain.InvalidArgument, domain.NotFound, domain.Denied, domain.TooLarge:
		default:
			t.Errorf("%s: coded %s", what, e.Code)
		}
		if what == "unknown argument" && !strings.Contains(e.Msg, "berth_no_such_argument") {
			t.Errorf("%s: the message does not name it: %s", what, e.Msg)
		}
	}
	if now := f.State(); now != before {
		t.Errorf("wrong calls changed something:\n%s\n%s", before, now)
	}
}
