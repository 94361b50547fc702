package sqlstore

import "github.com/berth-dev/berth/core/domain"

func writeCompacted(w *writer, r domain.Compacted) {
	text(w, "turn", r.Turn)
	text(w, "id", r.ID)
	text(w, "agent", r.Agent)
	text(w, "provider", r.Model.Provider)
	text(w, "model", r.Model.Model)
	w.number("trimmed", int64(r.Trimmed))
	w.number("through", int64(r.Through))
	w.number("largest", r.Largest)
	text(w, "summary", r.Summary)
	optional(w, "plain", r.Plain, writeFailure)
	w.flag("cancelled", r.Cancelled)
	w.number("before", r.Before)
	w.number("after", r.After)
	w.number("window", r.Window)
	writeUsage(w, r.Usage)
	optional(w, "cost", r.Cost, writeCost)
}

func readCompacted(r *reader) (v domain.Compacted) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "id":
			v.ID = domain.CompactionID(r.text())
		case "agent":
			v.Agent = r.text()
		case "provider":
			v.Model.Provider = r.text()
		case "model":
			v.Model.Model = r.text()
		case "trimmed":
			v.Trimmed = domain.Seq(r.number())
		case "through":
			v.Through = domain.Seq(r.number())
		case "largest":
			v.Largest = r.number()
		case "summary":
			v.Summary = r.text()
		case "plain":
			v.Plain = ref(r, readFailure)
		case "cancelled":
			v.Cancelled = r.flag()
		case "before":
			v.Before = r.number()
		case "after":
			v.After = r.number()
		case "window":
			v.Window = r.number()
		case "usage":
			v.Usage = readUsage(r)
		case "cost":
			v.Cost = ref(r, readCost)
		default:
			r.skip()
		}
	}
	return v
}

// writeCost writes an amount of money as an object, which can be there and 0.
func writeCost(w *writer, m domain.MicroUSD) { w.number("micro_usd", int64(m)) }

func readCost(r *reader) (m domain.MicroUSD) {
	for key := range r.object {
		switch key {
		case "micro_usd":
			m = domain.MicroUSD(r.number())
		default:
			r.skip()
		}
	}
	return m
}
