// What can be done with the session that is shown, besides talking to it.
import {confirm} from "./dialogs.js";
import {transcript} from "./files.js";
import {saved} from "./nodes.js";
import {line, prose} from "./text.js";

/**
 * Menu drives the menu of a session and the questions before what cannot be
 * undone. current returns what is shown, title its title.
 */
export class Menu {
	#node;
	#ask;
	#current;
	#say;

	constructor({node, ask, takeover, current, title, call, deleted, say}) {
		this.#node = node;
		this.#ask = ask;
		this.#current = current;
		this.#say = say;
		const on = (id, does) => node.querySelector(`#${id}`).addEventListener("click", () => {
			this.close();
			const o = current();
			if (o) does(o);
		});
		on("copylink", (o) => this.#copy(new URL(`#/s/${o.id}`, location.href).href));
		on("copyid", (o) => this.#copy(o.id));
		on("save", (o) => {
			const name = line(title(), 60).replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "session";
			saved(`${name}.md`, new TextEncoder().encode(transcript(o.session, prose(title()), [o.meta.agent, o.meta.model, o.cwd, o.session.updatedAt])));
			say("Saved");
		});
		on("delete", async (o) => {
			const sure = await confirm(ask, {
				title: "Delete this session?", yes: "Delete for good", danger: true,
				text: `“${line(title(), 80)}” and all that was said in it will be removed from the gateway. Files in its directory stay.`,
			});
			if (!sure) return;
			try {
				await call("session/delete", {sessionId: o.id});
				deleted(o);
			} catch (err) {
				o.session.note("error", "The session could not be deleted", err.message);
				o.touched();
			}
		});
		takeover.addEventListener("click", () => this.#takeOver());
		document.addEventListener("click", (e) => {
			if (node.open && !node.contains(e.target)) this.close();
		});
		node.addEventListener("keydown", (e) => this.#arrows(e));
		// Whoever tabs out of it is done with it.
		node.addEventListener("focusout", (e) => {
			if (e.relatedTarget && !node.contains(e.relatedTarget)) this.close();
		});
	}

	close() {
		this.#node.open = false;
	}

	#arrows(e) {
		if (e.key === "Escape" && this.#node.open) {
			e.preventDefault();
			this.close();
			this.#node.querySelector("summary").focus();
			return;
		}
		if ((e.key !== "ArrowDown" && e.key !== "ArrowUp") || !this.#node.open) return;
		e.preventDefault();
		const all = [...this.#node.querySelectorAll("button")].filter((b) => !b.hidden);
		const i = all.indexOf(document.activeElement);
		all[(i + (e.key === "ArrowDown" ? 1 : all.length - (i < 0 ? 0 : 1))) % all.length].focus();
	}

	async #copy(text) {
		try {
			await navigator.clipboard.writeText(text);
			this.#say("Copied");
		} catch {
			this.#say("The browser does not allow copying here");
		}
	}

	async #takeOver() {
		const o = this.#current();
		if (!o) return;
		const sure = await confirm(this.#ask, {
			title: "Take this session over?", yes: "Take over",
			text: "Another client works in it. It loses the session; what runs goes on, and you answer for it from now on.",
		});
		if (sure) o.load({takeover: true});
	}
}
