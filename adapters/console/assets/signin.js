// Signing in: a token, kept in the tab's own storage and nowhere else.
import {refusal, usable} from "./wire.js";

const KEY = "berth.token";

/** probe asks whether a token is right; it says what is wrong, or "". */
export async function probe(token) {
	try {
		const r = await fetch("/acp", {headers: token ? {Authorization: `Bearer ${token}`} : {}, cache: "no-store", credentials: "omit"});
		r.body?.cancel();
		return refusal(r.status, Number(r.headers.get("Retry-After")));
	} catch {
		return ""; // not reached at all: that is no refusal
	}
}

/** SignIn drives the form. entered is called with a token that is right. */
export class SignIn {
	#page;
	#field;
	#error;

	constructor({page, form, field, error, entered}) {
		this.#page = page;
		this.#field = field;
		this.#error = error;
		form.addEventListener("submit", async (e) => {
			e.preventDefault();
			const token = field.value.trim();
			const wrong = usable(token);
			if (wrong) return this.ask(wrong);
			const button = form.querySelector("button");
			button.disabled = true;
			const problem = await probe(token);
			button.disabled = false;
			if (problem) return this.ask(token ? problem : "This gateway asks for a token.");
			sessionStorage.setItem(KEY, token);
			entered(token);
		});
	}

	/** kept is the token of this tab, or null; a gateway that asks for none has "". */
	get kept() {
		return sessionStorage.getItem(KEY);
	}

	/** ask shows the form, with what was wrong. */
	ask(problem = "") {
		this.#page.hidden = false;
		this.#error.textContent = problem;
		this.#field.setAttribute("aria-invalid", String(!!problem));
		document.title = "Berth: sign in";
		this.#field.focus();
		this.#field.select();
	}

	/** done takes the form away, and the token out of it. */
	done() {
		this.#page.hidden = true;
		this.#field.value = "";
		this.#error.textContent = "";
	}

	/** forget forgets the token. */
	forget() {
		sessionStorage.removeItem(KEY);
		this.#field.value = "";
	}
}
