package web

import (
	"strconv"
	"strings"
)

// Lists and tables of a page.

func (r *renderer) list(name string, attrs map[string]string) {
	if r.within("li") {
		r.out.lines(1)
	} else {
		r.out.lines(2)
	}
	e := element{name: name}
	if name == "ol" {
		e.number = 1
		if n, err := strconv.Atoi(attrs["start"]); err == nil && n > 0 && n < 1_000_000 {
			e.number = n
		}
	}
	r.push(e)
}

// item begins an item of a list, which ends the one before it.
func (r *renderer) item(name string) {
	for len(r.open) > 0 {
		switch last := r.open[len(r.open)-1].name; last {
		case "li", "dt", "dd", "a":
			r.close(last)
			continue
		}
		break
	}
	r.out.lines(1)
	bullet := "- "
	for i := len(r.open) - 1; i >= 0; i-- {
		if e := &r.open[i]; e.name == "ol" || e.name == "ul" || e.name == "menu" {
			if e.number > 0 {
				bullet = strconv.Itoa(e.number) + ". "
				e.number++
			}
			break
		}
	}
	if name == "dt" {
		bullet = ""
	}
	r.push(element{name: name})
	if name != "dd" {
		r.out.bullet(bullet)
	}
	if name != "dt" {
		r.out.deeper("  ")
	}
}

// table begins a table, a row or a cell.
func (r *renderer) table(name string) {
	switch name {
	case "table":
		if r.out.cell { // a table in a cell is layout: its rows are lines
			r.out.cell = false
			r.out.lines(1)
		} else {
			r.out.lines(2)
		}
		r.push(element{name: name})
	case "tr":
		r.until("tr", "table")
		r.out.cell = false
		r.out.lines(1)
		r.push(element{name: name})
	default:
		r.until("td", "tr")
		r.until("th", "tr")
		if row := r.find("tr"); row != nil {
			if row.cells++; row.cells == 1 {
				r.out.mark("|")
			}
		}
		r.push(element{name: name})
		r.out.cell = true
		r.out.mark(" ")
	}
}

// until closes an element that is open inside another.
func (r *renderer) until(name, outer string) {
	for i := len(r.open) - 1; i >= 0; i-- {
		switch r.open[i].name {
		case name:
			r.close(name)
			return
		case outer:
			return
		}
	}
}

// endRow draws the line that Markdown wants below the first row of a table.
func (r *renderer) endRow(row element) {
	r.out.cell = false
	r.out.lines(1)
	t := r.find("table")
	if t == nil {
		return
	}
	if t.rows++; t.rows == 1 && row.cells > 0 && row.cells <= 64 && r.out.markdown {
		r.out.mark("|" + strings.Repeat(" --- |", row.cells))
		r.out.lines(1)
	}
}
