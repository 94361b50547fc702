// The list of sessions: pages of it, a search, and who of them runs or asks.
import {el} from "./nodes.js";
import {found, merged} from "./state.js";
import {ago, exact, lastPart, line} from "./text.js";

const PAGE = 50;
const DEEP = 20; // pages that a search reads at most

/** Sidebar keeps the list and draws it. */
export class Sidebar {
	rows = [];
	#cursor = null;
	#list;
	#more;
	#status;
	#query;
	#call;
	#marks;
	#drawn;
	#busy = null;

	constructor({list, more, status, query, call, marks, drawn}) {
		this.#list = list;
		this.#more = more;
		this.#status = status;
		this.#query = query;
		this.#call = call;
		this.#marks = marks;
		this.#drawn = drawn;
		more.addEventListener("click", () => this.#page());
		let timer;
		query.addEventListener("input", () => {
			clearTimeout(timer);
			this.draw();
			timer = setTimeout(() => this.#search(), 250);
		});
		list.addEventListener("keydown", (e) => this.#arrows(e));
		query.addEventListener("keydown", (e) => this.#arrows(e));
	}

	/** refresh reads the newest page again; pages that were read stay. */
	async refresh() {
		if (this.#busy) return this.#busy;
		const first = !this.rows.length;
		this.#busy = (async () => {
			const page = await this.#call("session/list", {_meta: {berth: {limit: PAGE}}});
			const newest = page.sessions ?? [];
			const oldest = newest[newest.length - 1]?.updatedAt ?? "";
			// What should be on this page and is not was deleted.
			const here = new Set(newest.map((r) => r.sessionId));
			const rest = this.rows.filter((r) => !here.has(r.sessionId) && page.nextCursor && String(r.updatedAt) <= oldest);
			this.rows = merged(rest, newest);
			if (first || !rest.length) this.#cursor = page.nextCursor ?? null;
			this.draw();
		})().finally(() => (this.#busy = null));
		return this.#busy;
	}

	async #page() {
		if (!this.#cursor) return;
		const had = this.rows.length;
		try {
			const page = await this.#call("session/list", {cursor: this.#cursor, _meta: {berth: {limit: PAGE}}});
			this.#cursor = page.nextCursor ?? null;
			this.rows = merged(this.rows, page.sessions ?? []);
		} catch (err) {
			this.#cursor = null;
			this.#status.textContent = err.message;
		}
		this.draw();
		if (document.activeElement === this.#more || document.activeElement === document.body) this.#list.children[had]?.querySelector("a")?.focus();
	}

	/** find returns a session's row, reading older pages for it; undefined when there is none. */
	async find(id) {
		const row = () => this.rows.find((r) => r.sessionId === id);
		if (!row()) await this.refresh();
		for (let n = 0; n < 5 * DEEP && !row() && this.#cursor; n++) await this.#page();
		return row();
	}

	async #search() {
		const query = this.#query.value;
		for (let n = 0; n < DEEP && query && query === this.#query.value && this.#cursor; n++) {
			if (found(this.rows, query).length >= PAGE) break;
			await this.#page();
		}
		this.draw();
	}

	/** forget takes a session off the list. */
	forget(id) {
		this.rows = this.rows.filter((r) => r.sessionId !== id);
		this.draw();
	}

	/** forgetAll empties the list and the search. */
	forgetAll() {
		this.rows = [];
		this.#cursor = null;
		this.#query.value = "";
		this.draw();
	}

	/** focus gives the focus to a session's row, or to the search. */
	focus(id) {
		(this.#list.querySelector(`[data-id="${CSS.escape(id)}"]`) ?? this.#query).focus();
	}

	/** draw draws what was read and matches the search. */
	draw() {
		const {current, running, asking, titles} = this.#marks();
		const focused = document.activeElement?.closest?.("[data-id]")?.dataset.id;
		const rows = found(this.rows, this.#query.value);
		this.#list.replaceChildren(...rows.map((r) => {
			const id = r.sessionId;
			const state = asking.has(id) ? "asks" : running.has(id) ? "running" : "";
			const title = line(titles.get(id) || r.title || r._meta?.berth?.label || "Untitled session", 120);
			return el("li", {},
				el("a", {href: `#/s/${id}`, "data-id": id, "aria-current": id === current ? "page" : null, title: exact(`${r.cwd}\n${id}`)},
					el("span", {class: "name", dir: "auto", text: title}),
					el("span", {class: "about"},
						state ? el("span", {class: `state ${state}`, text: state}) : null,
						el("span", {class: "dir", text: lastPart(r.cwd)}),
						el("time", {datetime: r.updatedAt, text: ago(r.updatedAt)}))));
		}));
		this.#more.hidden = !this.#cursor;
		this.#status.textContent = rows.length ? "" : this.rows.length ? "No session matches." : "No sessions yet.";
		this.#drawn();
		if (focused) this.#list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
	}

	#arrows(e) {
		const links = [...this.#list.querySelectorAll("a")];
		const at = links.indexOf(document.activeElement); // -1: in the search
		const to = {ArrowDown: at + 1, ArrowUp: at - 1, ...(at < 0 ? {} : {Home: 0, End: links.length - 1})}[e.key];
		if (to === undefined || to >= links.length || (to < 0 && at < 0)) return;
		e.preventDefault();
		(links[to] ?? this.#query).focus();
	}
}
