package porttest

import (
	"context"
	"strings"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// ModelsHarness proves a ports.Models.
type ModelsHarness struct {
	// Open returns the models under test. They have the provider and model of
	// Known, which the catalogue lists, and the provider of Keyless, which
	// wants a key and has none.
	Open    func(t TB) ports.Models
	Known   domain.ModelRef
	Keyless domain.ModelRef
	// Asked returns how many requests the models of this case have sent to
	// providers; nil when there is no wire.
	Asked func() int
}

// Models runs the conformance suite of ports.Models.
func Models(t TB, h ModelsHarness) {
	t.Helper()
	runChecks(t, h, modelsChecks())
}

func modelsChecks() []check[ModelsHarness] {
	return []check[ModelsHarness]{
		{"open", "a configured model is opened under its own name", func(t TB, h ModelsHarness) {
			m, err := h.Open(t).Open(t.Context(), h.Known)
			if err != nil {
				t.Fatalf("open %s: %v", h.Known, err)
			}
			if got := m.Info().Ref; got != h.Known {
				t.Errorf("it says it is %s", got)
			}
		}},
		{"open-again", "opening a model twice works, and from several goroutines", func(t TB, h ModelsHarness) {
			ms := h.Open(t)
			errs := make(chan error, 8)
			var wg sync.WaitGroup
			for range cap(errs) {
				wg.Go(func() {
					_, err := ms.Open(t.Context(), h.Known)
					errs <- err
				})
			}
			wg.Wait()
			for range cap(errs) {
				if err := <-errs; err != nil {
					t.Errorf("%v", err)
				}
			}
		}},
		{"not-asked", "opening and listing ask no provider", func(t TB, h ModelsHarness) {
			ms := h.Open(t)
			if _, err := ms.Open(t.Context(), h.Known); err != nil {
				t.Fatalf("%v", err)
			}
			if _, err := ms.Catalog(t.Context()); err != nil {
				t.Fatalf("%v", err)
			}
			if h.Asked != nil && h.Asked() != 0 {
				t.Errorf("%d requests were sent", h.Asked())
			}
		}},
		{"unknown-provider", "a provider that is not configured is refused, and those that are are named", func(t TB, h ModelsHarness) {
			_, err := h.Open(t).Open(t.Context(), domain.ModelRef{Provider: "no_such_provider", Model: "m"})
			wantModelsError(t, err, domain.InvalidArgument, "no_such_provider", h.Known.Provider, h.Keyless.Provider)
		}},
		{"no-model", "a reference without a model is refused", func(t TB, h ModelsHarness) {
			_, err := h.Open(t).Open(t.Context(), domain.ModelRef{Provider: h.Known.Provider})
			wantModelsError(t, err, domain.InvalidArgument)
		}},
		{"no-key", "a provider without its key is refused, saying whose and that it is missing", func(t TB, h ModelsHarness) {
			_, err := h.Open(t).Open(t.Context(), h.Keyless)
			wantModelsError(t, err, domain.AuthRequired, h.Keyless.Provider, "key")
		}},
		{"catalog", "the catalogue lists the models known, each once, those of providers without a key too", func(t TB, h ModelsHarness) {
			infos, err := h.Open(t).Catalog(t.Context())
			if err != nil {
				t.Fatalf("%v", err)
			}
			seen := make(map[domain.ModelRef]int)
			for _, info := range infos {
				seen[info.Ref]++
				if info.Ref.Provider == "" || info.Ref.Model == "" || info.Title == "" {
					t.Errorf("the entry %+v has no name or title", info)
				}
				if seen[info.Ref] > 1 {
					t.Errorf("%s is listed twice", info.Ref)
				}
			}
			if seen[h.Known] == 0 || seen[h.Keyless] == 0 {
				t.Errorf("%s or %s is not listed", h.Known, h.Keyless)
			}
		}},
		{"catalog-true", "an opened model says of itself what the catalogue said", func(t TB, h ModelsHarness) {
			ms := h.Open(t)
			m, err := ms.Open(t.Context(), h.Known)
			if err != nil {
				t.Fatalf("%v", err)
			}
			infos, err := ms.Catalog(t.Context())
			if err != nil {
				t.Fatalf("%v", err)
			}
			for _, info := range infos {
				if info.Ref == h.Known && info != m.Info() {
					t.Errorf("the catalogue says %+v, the model %+v", info, m.Info())
				}
			}
		}},
		{"describe", "a model is described as it will say of itself, and without a key; one of nowhere by its name alone", func(t TB, h ModelsHarness) {
			ms := h.Open(t)
			m, err := ms.Open(t.Context(), h.Known)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if got := ms.Describe(h.Known); got != m.Info() {
				t.Errorf("it is described as %+v, the model says %+v", got, m.Info())
			}
			if got := ms.Describe(h.Keyless); got.Ref != h.Keyless || got.Title == "" {
				t.Errorf("a model without a key is described as %+v", got)
			}
			nowhere := domain.ModelRef{Provider: "no_such_provider", Model: "m"}
			if got := ms.Describe(nowhere); got != (domain.ModelInfo{Ref: nowhere}) {
				t.Errorf("a model of nowhere is described as %+v", got)
			}
		}},
		{"cancelled", "a context that has ended opens and lists nothing", func(t TB, h ModelsHarness) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(domain.CancelledByClient)
			ms := h.Open(t)
			_, err := ms.Open(ctx, h.Known)
			wantModelsError(t, err, domain.Cancelled)
			_, err = ms.Catalog(ctx)
			wantModelsError(t, err, domain.Cancelled)
		}},
	}
}

// wantModelsError demands an error of a code that names some things.
func wantModelsError(t TB, err error, code domain.Code, names ...string) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Errorf("the error is %v, want one coded %v", err, code)
		return
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error %q does not name %q", err, name)
		}
	}
}
