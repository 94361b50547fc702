// A session that the page has open: how it is loaded, watched, prompted, and
// loaded again after the connection was lost. No nodes of the page here.
import {Session} from "./state.js";
import {Lost} from "./wire.js";

const UNKNOWN_METHOD = -32601;
const DENIED = "DENIED";
const OURS = 90_000; // ms
// Notices of the gateway after which this is a session to watch, from its beginning.
const APART = new Set(["SESSION_TAKEN", "OBSERVER_DROPPED"]);

/** waits is a prompt that waits for its turn. */
function waits(text, more = []) {
	return {text, blocks: [...(text ? [{type: "text", text}] : []), ...more]};
}

/**
 * Opened is one open session. mode is loading, owner (ours to prompt), watching
 * (another client owns it), busy (another does and it cannot be watched), away
 * (the connection is lost) or failed (error says why). changed is called after
 * everything that shows.
 */
export class Opened {
	mode = "loading";
	error = "";
	meta = {};
	taken = false; // another client took it over
	session;
	running = 0; // requests of ours that end with a turn
	queue = []; // prompts that wait for their turn: {text, blocks}
	#incoming = null;
	#round = 0;
	#lost = null; // when the connection was lost while this was ours, in ms
	#call;
	#tell;
	#changed;

	constructor({id, cwd = "", additional = [], call, tell, changed}) {
		this.id = id;
		this.cwd = cwd; // with additional what a load would change, so it has to be known
		this.additional = additional;
		this.session = new Session(id);
		this.#call = call;
		this.#tell = tell;
		this.#changed = changed;
	}

	/** created takes the answer to session/new for the state of a new session. */
	created(meta) {
		this.meta = meta ?? {};
		this.mode = "owner";
	}

	/** apply takes an update in, also while the history comes. */
	apply(update) {
		(this.#incoming ?? this.session).apply(update);
		this.#changed(this);
		const open = this.mode === "owner" || this.mode === "watching";
		if (open && update?.sessionUpdate === "notice" && APART.has(update._meta?.berth?.reason)) {
			this.taken = update._meta.berth.reason === "SESSION_TAKEN";
			this.watch();
		}
	}

	/** admitted is told which turns run and wait while the session is watched, and which ended. */
	admitted({running, queued, ended}) {
		if (this.mode === "owner") return;
		if (ended?.turnId) {
			(this.#incoming ?? this.session).ended(ended.error ? "error" : (ended.stopReason ?? "end_turn"), {turn: ended.turnId, text: ended.error ?? ""});
		}
		this.running = running ? 1 : 0;
		this.queue = (queued ?? []).map((q) => waits(q.text));
		this.#changed(this);
	}

	/**
	 * load reads the session from its beginning and makes it ours. When another
	 * client owns it, it is watched instead, unless takeover is set.
	 */
	async load({takeover = false} = {}) {
		// The gateway may not know yet that the old connection is gone, which then
		// still has the session. It is ours to take for a while.
		takeover ||= this.#lost !== null && Date.now() - this.#lost < OURS;
		const round = ++this.#round;
		this.running = 0;
		this.queue = [];
		this.mode = "loading";
		this.taken = false;
		this.#expect();
		try {
			const result = await this.#call("session/load", {
				sessionId: this.id, cwd: this.cwd, mcpServers: [],
				...(this.additional.length ? {additionalDirectories: this.additional} : {}),
				...(takeover ? {_meta: {berth: {takeover: true}}} : {}),
			});
			if (round !== this.#round) return;
			this.#arrived("owner", result);
			if (this.meta.running) this.#await(round, this.meta.running);
			for (const q of this.meta.queued ?? []) {
				this.queue.push(waits(q.text));
				this.#await(round, q.turnId);
			}
		} catch (err) {
			if (round !== this.#round) return;
			if (err instanceof Lost) this.lost();
			else if (err.reason === "SESSION_ACTIVE" || err.reason === DENIED) await this.watch();
			else this.fail(err);
		}
	}

	/** watch shows the session while another client owns it. */
	async watch() {
		const round = ++this.#round;
		this.running = 0;
		this.queue = [];
		this.mode = "loading";
		this.#expect();
		try {
			const result = await this.#call("_berth/session/observe", {sessionId: this.id, replay: true});
			if (round !== this.#round) return;
			this.#arrived("watching", result);
			this.admitted(this.meta);
		} catch (err) {
			if (round !== this.#round) return;
			if (err instanceof Lost) this.lost();
			else if (err.code === UNKNOWN_METHOD) {
				this.#incoming = null;
				this.mode = "busy";
				this.#changed(this);
			} else this.fail(err);
		}
	}

	#expect() {
		this.#incoming = new Session(this.id);
		// What is there stays to be seen until the new state is whole.
		if (!this.session.items.length) this.session = this.#incoming;
		this.#changed(this);
	}

	#arrived(mode, result) {
		this.session = this.#incoming ?? this.session;
		this.#incoming = null;
		this.session.head = true;
		this.#lost = null;
		this.meta = result?._meta?.berth ?? this.meta;
		this.cwd ||= this.meta.workspaceDir ?? "";
		this.mode = mode;
		this.#changed(this);
	}

	/** touched is told that its session was changed from outside. */
	touched() {
		this.#changed(this);
	}

	/** fail says that the session cannot be had. */
	fail(err) {
		this.#incoming = null;
		this.mode = "failed";
		this.error = err.message;
		this.#changed(this);
	}

	/** lost is told when the connection is gone. */
	lost() {
		this.#round++;
		if (this.mode === "owner") this.#lost = Date.now();
		this.#incoming = null;
		this.running = 0;
		this.queue = [];
		this.mode = "away";
		this.#changed(this);
	}

	/** await is there until a turn ends that was admitted before we came. */
	async #await(round, turnId) {
		this.running++;
		this.#changed(this);
		try {
			const result = await this.#call("_berth/session/await", {sessionId: this.id, turnId});
			if (round === this.#round) this.#ended(result);
		} catch (err) {
			if (round === this.#round && !(err instanceof Lost) && err.code !== UNKNOWN_METHOD) this.#complain(err, turnId);
		}
		if (round === this.#round) this.#next();
	}

	/**
	 * prompt sends a prompt of words and further blocks; behind a running turn it
	 * waits. It resolves when its turn has ended.
	 */
	async prompt(text, more = []) {
		const round = this.#round;
		const entry = waits(text, more);
		if (this.running) this.queue.push(entry);
		else this.session.said(entry.blocks);
		this.running++;
		this.#changed(this);
		try {
			const result = await this.#call("session/prompt", {sessionId: this.id, prompt: entry.blocks.map((b) => ({...b}))});
			if (round !== this.#round) return;
			this.#begin(entry);
			this.#ended(result);
		} catch (err) {
			if (round !== this.#round || err instanceof Lost) return;
			this.#begin(entry);
			this.#complain(err);
			if (err.reason === "SESSION_NOT_FOUND") {
				// Another client took it over.
				await this.watch();
				return;
			}
		}
		this.#next();
	}

	/** begin shows a prompt that was answered before it seemed to start. */
	#begin(entry) {
		const i = this.queue.indexOf(entry);
		if (i < 0) return;
		this.queue.splice(i, 1);
		this.session.said(entry.blocks);
	}

	#ended(result) {
		this.session.ended(result?.stopReason ?? "end_turn", {usage: result?._meta?.berth?.usage, turn: result?._meta?.berth?.turnId});
		if (result?._meta?.berth?.sessionUsage) {
			this.session.usage = {...this.session.usage, total: result._meta.berth.sessionUsage};
			this.session.head = true;
		}
	}

	#complain(err, turn) {
		this.session.ended("error", {text: err.message, turn});
	}

	#next() {
		this.running = Math.max(0, this.running - 1);
		const entry = this.queue.shift();
		if (entry) this.session.said(entry.blocks);
		this.#changed(this);
	}

	/** cancel ends the running turn and those that wait. */
	cancel() {
		this.#tell("session/cancel", {sessionId: this.id});
	}

	/** release gives a session back that nothing runs in, so that others can have it. */
	async release() {
		if (this.mode === "owner" && !this.running) await this.#call("session/close", {sessionId: this.id});
		else if (this.mode === "watching") await this.#call("_berth/session/unobserve", {sessionId: this.id});
		else return false;
		return true;
	}
}
