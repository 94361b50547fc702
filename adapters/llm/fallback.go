package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// chain is a model whose provider has fallbacks. It asks the model itself and,
// when that cannot answer now, the fallbacks in their order, until one begins
// a reply. A model that failed a moment ago is asked last, see cooling.
//
// Falling back is for what is nobody's mistake: a provider that cannot be
// reached, asks to wait, or whose account is spent. It is not done
//
//   - once anything of a reply was passed on: two models' words would stand in
//     one message;
//   - for a missing or refused key: the conversation would go to another
//     company, and the bill too, because of a slip that takes a minute to
//     mend, and nobody would ever notice that the chosen model does not answer;
//   - for a conversation that is too long: it is shortened and asked again;
//   - for a request that the provider refuses: it is wrong in itself, as a
//     model's name may be, or not allowed, and another's answer would hide it;
//   - for a cancel.
//
// A fallback is help that is welcome where it works: one that fails for
// whatever reason, or has no key, gives way to the next. A fallback's own
// fallbacks are not followed, so chains cannot be circles.
type chain struct {
	models  *Models
	primary ports.Model
	refs    []domain.ModelRef // the primary, then its fallbacks, each once
}

var _ ports.Model = (*chain)(nil)

// Info describes the primary.
func (c *chain) Info() domain.ModelInfo { return c.primary.Info() }

// Stream asks the models one after the other. When none answers the error is
// the primary's, and names the others.
func (c *chain) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		d := descent{chain: c, ctx: ctx, req: req, yield: yield, now: c.refs[0]}
		err := d.run()
		if err != nil {
			yield(nil, err)
		}
	}
}

// descent is one request on its way along a chain.
type descent struct {
	*chain
	ctx   context.Context
	req   domain.ModelRequest
	yield func(domain.ModelEvent, error) bool

	now   domain.ModelRef // whom the consumer takes to be asked
	why   []string        // why that one cannot answer, and who is left out
	first *domain.Error   // the primary's failure
	notes []string        // what became of the others
}

// run returns nil when nothing more is to be said, else the last word.
func (d *descent) run() error {
	order, resting := d.models.cool.order(d.refs)
	if resting != "" {
		d.why = []string{resting}
	}
	for _, ref := range order {
		if d.ctx.Err() != nil {
			return cancelled(context.Cause(d.ctx)).Err
		}
		model, err := d.open(ref)
		if err != nil {
			d.skip(ref, err)
			continue
		}
		if ref != d.now {
			if !d.yield(domain.FellBack{From: d.now, To: model.Info(), Reason: strings.Join(d.why, "; ")}, nil) {
				return nil
			}
			d.now = ref
		}
		err = d.ask(model, ref)
		if err == nil {
			return nil
		}
		failed := codedError(err)
		if failed.Code == domain.Cancelled || ref == d.refs[0] && !passes(failed.Code) {
			return err
		}
		d.models.cool.failed(ref, failed)
		d.why = []string{failed.Msg}
		if ref == d.refs[0] {
			d.first = failed
		} else {
			d.notes = append(d.notes, fmt.Sprintf("%s: %s", ref, failed.Msg))
		}
	}
	return d.last()
}

// open returns one model of the chain.
func (d *descent) open(ref domain.ModelRef) (ports.Model, error) {
	if ref == d.refs[0] {
		return d.primary, nil
	}
	return d.models.single(ref)
}

// skip notes a fallback that is not configured or has no key.
func (d *descent) skip(ref domain.ModelRef, err error) {
	note := fmt.Sprintf("%s is left out: %s", ref, codedError(err).Msg)
	d.why = append(d.why, note)
	d.notes = append(d.notes, note)
}

// ask streams one model. It returns why nothing of a reply came; nil when the
// consumer has left or was told the end.
func (d *descent) ask(model ports.Model, ref domain.ModelRef) error {
	req := d.req
	req.Model = ref
	if most := model.Info().MaxOutput; most > 0 && int64(req.MaxOutputTokens) > most && ref != d.refs[0] {
		req.MaxOutputTokens = int(most)
	}
	begun := false
	for ev, err := range model.Stream(d.ctx, req) {
		if err != nil {
			if begun {
				d.yield(nil, err)
				return nil
			}
			return err
		}
		if _, waits := ev.(domain.Retrying); !waits {
			begun = true
		}
		if _, ends := ev.(domain.Finish); ends {
			d.models.cool.works(ref)
		}
		if !d.yield(ev, nil) {
			return nil
		}
	}
	if !begun {
		return domain.WrapError(domain.Internal, errIncomplete, "the request to the model could not be made")
	}
	return nil
}

// last is the primary's error, with what became of the others.
func (d *descent) last() error {
	if len(d.notes) == 0 {
		return d.first
	}
	err := *d.first
	err.Msg = fmt.Sprintf("%s. No fallback could answer: %s", strings.TrimRight(err.Msg, "."), strings.Join(d.notes, "; "))
	return &err
}

// passes reports whether a failure is one to fall back for.
func passes(c domain.Code) bool {
	return c == domain.Unavailable || c == domain.RateLimited || c == domain.QuotaExhausted
}

func codedError(err error) *domain.Error {
	var coded *domain.Error
	if errors.As(err, &coded) {
		return coded
	}
	return domain.WrapError(domain.Internal, err, "the request to the model could not be made")
}

// chained returns the references that a model of p is asked under: its own
// and those of the fallbacks, each once.
func (p ProviderConfig) chained(ref domain.ModelRef) []domain.ModelRef {
	refs := []domain.ModelRef{ref}
	for _, f := range p.Fallback {
		if !slices.Contains(refs, f) {
			refs = append(refs, f)
		}
	}
	return refs
}
