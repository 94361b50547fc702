package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func (d *demo) start(ctx context.Context) error {
	begin := time.Now()
	if err := d.launch(ctx); err != nil {
		return err
	}
	d.view.note(fmt.Sprintf("spawned and initialized in %s", time.Since(begin).Round(time.Millisecond/10)))
	answer, err := d.proc.Call(ctx, "session/new", map[string]any{"cwd": d.files, "mcpServers": []any{}})
	if err != nil {
		return err
	}
	var opened struct {
		SessionID string `json:"sessionId"`
		Meta      struct {
			Berth struct {
				Sandbox *confinement `json:"sandbox"`
			} `json:"berth"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(answer, &opened); err != nil {
		return fmt.Errorf("the answer to session/new cannot be read: %w", err)
	}
	d.id, d.confined = opened.SessionID, opened.Meta.Berth.Sandbox
	d.view.note("session " + d.id)
	if d.confined != nil {
		d.view.note(d.confined.String())
	}
	return nil
}

// prompt returns a step that runs one turn to its natural end.
func (d *demo) prompt(text string) func(context.Context) error {
	return func(ctx context.Context) error {
		d.view.note("prompt: " + text)
		d.calls.Store(0)
		d.fails.Store(0)
		d.asked.Store(0)
		res, err := d.proc.Prompt(ctx, d.id, text)
		d.view.end()
		if err != nil {
			return err
		}
		if res.StopReason != "end_turn" {
			return fmt.Errorf("the turn stopped with %q", res.StopReason)
		}
		d.view.note("stop reason: " + res.StopReason)
		return nil
	}
}

func (d *demo) edit(ctx context.Context) error {
	if err := d.prompt(`edit notes.md replace "opens at 7" with "opens at 6"`)(ctx); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(d.files, "notes.md"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), "opens at 6") {
		return errors.New("the file was not changed")
	}
	d.view.note("on disk: " + strings.TrimSpace(strings.SplitAfter(string(data), "\n")[3]))
	return nil
}

func (d *demo) cancelled(ctx context.Context) error {
	done, stop, err := d.running(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := d.proc.Cancel(ctx, d.id); err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	took := time.Since(begin)
	d.view.end()
	if *stop != "cancelled" {
		return fmt.Errorf("the turn stopped with %q", *stop)
	}
	d.view.note(fmt.Sprintf("stop reason: cancelled, %s after the cancel", took.Round(time.Millisecond/10)))
	return nil
}

func (d *demo) killed(ctx context.Context) error {
	done, _, err := d.running(ctx)
	if err != nil {
		return err
	}
	d.proc.Kill()
	<-done // fails, as it must: nobody can answer any more
	d.view.end()
	d.view.note("the process is gone; nothing was said to it")
	return nil
}

func (d *demo) loaded(ctx context.Context) error {
	if err := d.launch(ctx); err != nil {
		return err
	}
	d.seen.Store(0)
	d.quiet.Store(true)
	begin := time.Now()
	err := d.proc.Load(ctx, d.id, d.files)
	took := time.Since(begin)
	d.quiet.Store(false)
	if err != nil {
		return err
	}
	if d.seen.Load() == 0 {
		return errors.New("nothing was replayed")
	}
	d.view.note(fmt.Sprintf("%d updates replayed in %s; the interrupted turn is marked as such", d.seen.Load(), took.Round(time.Millisecond/10)))
	return nil
}
