// The story of a session as nodes. Drawing is done once a frame, and only what
// is near the end is drawn at all.
import {drawer} from "./items.js";
import {el} from "./nodes.js";

const WINDOW = 150; // items drawn when a session is opened, and added by a button
const MOST = 450; // items drawn before old ones are put away
const SHARE = 3; // drawing takes at most one part of so many and one of the time
const REST = 1000; // ms that drawing rests at most

/** Feed draws a session into a box that scrolls. */
export class Feed {
	#box;
	#list;
	#earlier;
	#latest;
	#session = null;
	#from = 0;
	#next = 0; // first item that has no node
	#drawn = new Map(); // item -> its drawer
	#scheduled = false;
	#asking = new Set(); // ids of calls that wait for an answer
	#base = "";
	#stuck = true; // the person reads the end, and wants to go on so
	#top = 0;
	#drew = 0; // when it was last drawn, in ms
	#took = 0; // how long that was

	constructor(box, latest) {
		this.#box = box;
		this.#latest = latest;
		this.#list = el("div", {class: "items"});
		this.#earlier = el("button", {type: "button", class: "more", hidden: true, on: {click: () => this.#showEarlier()}});
		box.replaceChildren(this.#earlier, this.#list);
		box.addEventListener("scroll", () => this.#scrolled(), {passive: true});
		// Heights are guesses until a part is seen, and pictures come late.
		const sizes = new ResizeObserver(() => this.#stuck && this.toEnd());
		sizes.observe(box);
		sizes.observe(this.#list);
		latest.addEventListener("click", () => {
			this.toEnd();
			box.focus({preventScroll: true});
		});
	}

	/** show draws another session, or the same one read again. */
	show(session, base = "") {
		const same = this.#session?.id === session?.id;
		const stuck = !same || this.#stuck;
		const away = this.#box.scrollHeight - this.#box.scrollTop;
		this.#session = session;
		this.#base = base;
		this.#drawn.clear();
		this.#list.replaceChildren();
		this.#from = this.#next = Math.max(0, (session?.items.length ?? 0) - WINDOW);
		session?.changed.clear();
		this.#draw();
		if (stuck) this.toEnd();
		else this.#box.scrollTop = this.#box.scrollHeight - away;
	}

	/** asking says which calls wait for an answer of a person. */
	asking(ids) {
		const before = this.#asking;
		this.#asking = ids;
		for (const id of new Set([...before, ...ids])) {
			const item = this.#session?.call(id);
			if (item) this.#session.changed.add(item);
		}
		this.changed();
	}

	/** changed has what is new drawn with the next frame. */
	changed() {
		if (this.#scheduled) return;
		this.#scheduled = true;
		const frame = () => {
			if (!this.#scheduled) return;
			this.#scheduled = false;
			const began = performance.now();
			this.#draw();
			if (this.#stuck) this.toEnd();
			this.#drew = performance.now();
			this.#took = this.#drew - began;
		};
		const soon = () => {
			// A page in the background gets no frames, and must not fall behind.
			requestAnimationFrame(frame);
			setTimeout(frame, 500);
		};
		// What is costly to draw is drawn less often, so that the page stays at hand.
		const rest = Math.min(REST, SHARE * this.#took) - (performance.now() - this.#drew);
		if (this.#took > 8 && rest > 0) setTimeout(soon, rest);
		else soon();
	}

	toEnd() {
		this.#stuck = true;
		this.#box.scrollTop = this.#box.scrollHeight;
		this.#top = this.#box.scrollTop;
		this.#latest.hidden = true;
	}

	#scrolled() {
		const top = this.#box.scrollTop;
		if (this.#atEnd()) this.#stuck = true;
		else if (top < this.#top - 4) this.#stuck = false;
		this.#top = top;
		this.#latest.hidden = this.#stuck;
	}

	#atEnd() {
		return this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight < 60;
	}

	#draw() {
		const s = this.#session;
		if (!s) return;
		const items = s.items;
		const last = s.last;
		for (const item of s.changed) this.#drawn.get(item)?.show(item, item === last);
		s.changed.clear();
		if (this.#next < items.length) {
			if (items.length - this.#next > MOST) {
				// So much came at once that only its end is worth drawing.
				this.#drawn.clear();
				this.#list.replaceChildren();
				this.#from = this.#next = items.length - WINDOW;
			}
			const before = this.#next > 0 ? items[this.#next - 1] : null;
			const fresh = document.createDocumentFragment();
			for (; this.#next < items.length; this.#next++) fresh.append(this.#make(items[this.#next], items[this.#next] === last));
			this.#list.append(fresh);
			if (before) this.#drawn.get(before)?.show(before, false);
			this.#putAway();
		}
		this.#count();
	}

	#make(item, last) {
		const d = drawer(item, this.#base, (id) => this.#asking.has(id));
		this.#drawn.set(item, d);
		d.node.dataset.key = item.key;
		d.show(item, last);
		return d.node;
	}

	/** putAway takes old nodes away while the person reads the end. */
	#putAway() {
		const many = this.#next - this.#from;
		if (many <= MOST || !this.#stuck) return;
		const until = this.#next - WINDOW;
		for (; this.#from < until; this.#from++) {
			const item = this.#session.items[this.#from];
			this.#drawn.get(item)?.node.remove();
			this.#drawn.delete(item);
		}
	}

	#showEarlier() {
		const items = this.#session.items;
		const to = this.#from;
		this.#from = Math.max(0, to - WINDOW);
		const away = this.#box.scrollHeight - this.#box.scrollTop;
		const old = document.createDocumentFragment();
		for (const item of items.slice(this.#from, to)) old.append(this.#make(item, false));
		this.#list.prepend(old);
		this.#box.scrollTop = this.#box.scrollHeight - away;
		this.#count();
	}

	#count() {
		this.#earlier.hidden = this.#from === 0;
		if (this.#from) this.#earlier.textContent = `Show earlier (${this.#from} more)`;
	}
}
