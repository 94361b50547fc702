// The prompt box: Enter sends, Shift+Enter begins a line, a slash lists commands.
import {el} from "./nodes.js";
import {commandsFor} from "./state.js";
import {exact, line} from "./text.js";

/** Composer drives the box. send is called with what was typed. */
export class Composer {
	#text;
	#list;
	#commands = [];
	#offered = [];
	#at = 0;
	#send;
	#drafts = new Map();
	#session = "";

	constructor(form, text, list, send) {
		this.#text = text;
		this.#list = list;
		this.#send = send;
		form.addEventListener("submit", (e) => {
			e.preventDefault();
			this.#go();
		});
		text.addEventListener("input", () => {
			this.#grow();
			this.#offer();
		});
		text.addEventListener("keydown", (e) => this.#key(e));
		text.addEventListener("blur", () => setTimeout(() => this.#close(), 150));
	}

	/** of switches to a session; what was typed for the one before is kept. */
	of(session) {
		if (session === this.#session) return;
		this.#drafts.set(this.#session, this.#text.value);
		this.#session = session;
		this.#text.value = this.#drafts.get(session) ?? "";
		this.#grow();
		this.#close();
	}

	/** forget forgets what was typed, in all sessions. */
	forget() {
		this.#drafts.clear();
		this.#session = "";
		this.#text.value = "";
		this.#close();
	}

	/** commands are those that the session has. */
	commands(list) {
		this.#commands = list;
	}

	focus() {
		this.#text.focus({preventScroll: true});
	}

	#go() {
		const text = this.#text.value;
		if (this.#text.disabled || !this.#send(text)) return;
		this.#text.value = "";
		this.#grow();
		this.#close();
	}

	#grow() {
		this.#text.style.height = "auto";
		this.#text.style.height = `${Math.min(this.#text.scrollHeight + 2, Math.max(120, innerHeight * 0.4))}px`;
	}

	#key(e) {
		if (e.isComposing) return;
		if (this.#offered.length) {
			const n = this.#offered.length;
			if (e.key === "ArrowDown" || e.key === "ArrowUp") {
				e.preventDefault();
				this.#at = (this.#at + (e.key === "ArrowDown" ? 1 : n - 1)) % n;
				this.#draw();
				return;
			}
			if (e.key === "Tab" || (e.key === "Enter" && `/${this.#offered[this.#at].name}` !== this.#text.value)) {
				e.preventDefault();
				this.#take(this.#at);
				return;
			}
			if (e.key === "Escape") {
				e.preventDefault();
				this.#close();
				return;
			}
		}
		if (e.key === "Enter" && !e.shiftKey && !e.ctrlKey && !e.altKey && !e.metaKey) {
			e.preventDefault();
			this.#go();
		}
	}

	#offer() {
		this.#offered = commandsFor(this.#text.value, this.#commands).slice(0, 12);
		this.#at = 0;
		this.#draw();
	}

	#draw() {
		const open = this.#offered.length > 0;
		this.#list.hidden = !open;
		this.#list.replaceChildren(...this.#offered.map((c, i) =>
			el("li", {
				id: `command-${i}`, role: "option", "aria-selected": String(i === this.#at),
				on: {mousedown: (e) => {
					e.preventDefault();
					this.#take(i);
				}},
			}, el("code", {text: `/${exact(String(c.name))}`}), el("span", {dir: "auto", text: line(c.description, 140)}))));
		if (open) {
			this.#text.setAttribute("aria-activedescendant", `command-${this.#at}`);
			this.#list.children[this.#at].scrollIntoView({block: "nearest"});
		} else this.#text.removeAttribute("aria-activedescendant");
	}

	#take(i) {
		const c = this.#offered[i];
		this.#text.value = `/${c.name} `;
		this.#text.focus();
		this.#close();
		this.#grow();
	}

	#close() {
		this.#offered = [];
		this.#draw();
	}
}
