// The page: keeps the connection, and puts the parts together.
import {Attach} from "./attach.js";
import {Banner} from "./banner.js";
import {Begin} from "./begin.js";
import {colours} from "./colours.js";
import {Composer} from "./composer.js";
import {Permissions} from "./dialogs.js";
import {drawHead, titleOf} from "./head.js";
import {entitle, say, spoken, turnEnded} from "./heard.js";
import {Menu} from "./menu.js";
import {el, icon} from "./nodes.js";
import {Opened} from "./opened.js";
import {Sidebar} from "./sidebar.js";
import {probe, SignIn} from "./signin.js";
import {line} from "./text.js";
import {Feed} from "./view.js";
import {Connection} from "./wire.js";

const $ = (id) => document.getElementById(id);
const opened = new Map(); // sessions that are open, by id
let link = null;
let current = null; // what the page shows
let shownSession = null;
let restored = false; // the address has been followed once
let looksOnly = false; // the token may observe and do nothing else

const call = (method, params) => (link ? link.call(method, params) : Promise.reject(new Error("not connected")));
const rowOf = (id) => sidebar.rows.find((r) => r.sessionId === id);

// -- Signing in

const signIn = new SignIn({page: $("signin"), form: $("signin-form"), field: $("token"), error: $("token-error"), entered: connect});

function askForToken(problem) {
	$("app").hidden = true;
	signIn.ask(problem);
}

/** signOut forgets the token and all that was shown; what runs goes on. */
function signOut(problem = "") {
	link?.leave();
	link = null;
	signIn.forget();
	for (const id of opened.keys()) permissions.forget(id);
	opened.clear();
	current = shownSession = null;
	restored = false;
	sidebar.forgetAll();
	composer.forget();
	attach.forget();
	feed.show(null);
	for (const id of ["title", "sub", "usage", "queue", "say"]) $(id).replaceChildren();
	$("plan").querySelector("ol").replaceChildren();
	askForToken(problem);
}

// -- The connection

const open = (protocols) => new WebSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/acp`, protocols);

function connect(token) {
	link = new Connection({
		token, open, probe,
		on: {
			state: linkState,
			ready: begin,
			update: (id, update) => {
				const o = opened.get(id);
				if (!o) return;
				o.apply(update);
				if (update?.sessionUpdate === "session_info_update") sidebarSoon();
			},
			ask: (params, reply, token) => {
				const o = opened.get(params.sessionId);
				permissions.add({params, reply, token, where: o ? titleOf(o, rowOf(o.id)) : rowOf(params.sessionId)?.title ?? ""});
				say("Permission needed");
			},
			withdraw: (token) => permissions.withdraw(token),
			notified: (method, params) => {
				if (method === "_berth/session/queue") opened.get(params?.sessionId)?.admitted(params);
			},
		},
	});
	link.start();
}

const banner = new Banner($("link"), () => link?.retry());

function linkState(state, detail) {
	banner.show(state, detail);
	if (state === "waiting") for (const o of opened.values()) o.lost();
	if (state === "refused") signOut(detail);
}

/** wake finds out what happened while nobody looked. */
function wake() {
	link?.retry();
	link?.check();
	if (!document.hidden) sidebarSoon();
	drawTitle();
}

addEventListener("online", wake);
addEventListener("pageshow", wake);
document.addEventListener("visibilitychange", () => !document.hidden && wake());
setInterval(() => {
	link?.check();
	if (!document.hidden) sidebarSoon();
}, 20_000);

/** begin is called with each new connection. */
async function begin(init) {
	signIn.done();
	$("app").hidden = false;
	const info = init.agentInfo ?? {};
	$("about").textContent = `${line(info.title || info.name || "Agent", 40)} ${line(info.version ?? "", 60)}`;
	const berth = init._meta?.berth ?? {};
	beginning.agents(berth);
	attach.offers(init.agentCapabilities?.promptCapabilities, berth.limits);
	looksOnly = !!berth.observeOnly;
	$("new").hidden = $("empty-new").hidden = $("delete").hidden = looksOnly;
	queueMicrotask(async () => {
		for (const o of opened.values()) load(o);
		try {
			await sidebar.refresh();
		} catch (err) {
			$("sessions-status").textContent = err.message;
		}
		if (!restored) {
			restored = true;
			route();
		}
	});
}

// -- The list

const sidebar = new Sidebar({
	list: $("sessions"), more: $("sessions-more"), status: $("sessions-status"), query: $("search"), call,
	marks: () => ({
		current: current?.id,
		running: new Set([...opened.values()].filter((o) => o.running).map((o) => o.id)),
		asking: permissions.sessions(),
		titles: new Map([...opened.values()].map((o) => [o.id, o.session.title])),
	}),
	drawn: () => {
		$("empty-title").textContent = sidebar.rows.length ? "Nothing is open" : "No sessions yet";
		$("empty-text").textContent = sidebar.rows.length ? "Choose a session to go on with it, or to see what it does." : looksOnly ? "What others begin is shown here." : "Begin one. It goes on when you close this page.";
	},
});

let soon = null;

function sidebarSoon() {
	soon ??= setTimeout(() => {
		soon = null;
		if (link?.state === "ready") sidebar.refresh().catch(() => {});
	}, 400);
}

// -- What is shown

const permissions = new Permissions($("ask"), $("ask-banner"), () => {
	if (current) {
		feed.asking(permissions.calls(current.id));
		changed(current);
	}
	sidebar.draw();
	drawTitle();
});
const feed = new Feed($("feed"), $("latest"));

function route() {
	if (!link || link.state === "closed") return;
	const m = /^#\/s\/([\w-]+)$/.exec(location.hash);
	const page = m ? "session" : location.hash === "#/new" && !looksOnly ? "new" : "list";
	const before = current;
	if (current && current.id !== m?.[1]) leave(current);
	$("app").dataset.page = page;
	$("empty").hidden = page !== "list";
	$("newform").hidden = page !== "new";
	$("story").hidden = page !== "session";
	if (m) show(m[1]);
	else current = null;
	sidebar.draw();
	drawTitle();
	if (page === "new") beginning.open(sidebar.rows.map((r) => r.cwd));
	// What had the focus is gone: it goes to where the person came from.
	if (page === "list" && before && document.activeElement === document.body) sidebar.focus(before.id);
}

addEventListener("hashchange", route);

function openedFor(id, cwd, additional) {
	const o = new Opened({id, cwd, additional, call, tell: (method, params) => link?.tell(method, params), changed});
	opened.set(id, o);
	return o;
}

/** load loads a session, once it is known where it works. */
async function load(o) {
	if (!o.cwd) {
		const row = await sidebar.find(o.id).catch(() => null);
		if (opened.get(o.id) !== o) return;
		if (!row) return o.watch(); // the list need not have all, and this says what is wrong
		o.cwd = row.cwd;
		o.additional = row.additionalDirectories ?? [];
	}
	return o.load();
}

function show(id) {
	let o = opened.get(id);
	if (!o) {
		o = openedFor(id);
		load(o);
	} else if (o.mode === "failed" || o.mode === "busy") load(o);
	current = o;
	shownSession = null;
	composer.of(id);
	attach.of(id);
	changed(o);
	feed.asking(permissions.calls(id));
	drawHead(o, headFacts(o));
	// Where there are keys the prompt is next; else no keyboard should come up.
	if (keyed || matchMedia("(pointer: fine)").matches) composer.focus();
	if (document.activeElement !== $("composer-text")) $("session").focus();
}

/** leave gives a session back that nothing runs in. */
function leave(o) {
	if ((o.running && o.mode === "owner") || permissions.sessions().has(o.id)) return;
	o.release().catch(() => {});
	opened.delete(o.id);
}

let keyed = false; // the newest thing that the person did was to press a key
document.addEventListener("keydown", () => (keyed = true), true);
document.addEventListener("pointerdown", () => (keyed = false), true);

let headFrame = false;
const wasRunning = new WeakMap();
const drawTitle = () => $("signin").hidden && entitle(current ? titleOf(current, rowOf(current.id)) : "", permissions.sessions().size);
const headFacts = (o) => ({row: rowOf(o.id), looksOnly, asking: permissions.calls(o.id).size > 0});

/** changed is called for everything that changes in an open session. */
function changed(o) {
	const before = wasRunning.get(o) ?? 0;
	wasRunning.set(o, o.running);
	if (!!before !== !!o.running) {
		sidebarSoon();
		sidebar.draw();
		if (o === current) say(o.running ? "The agent works" : spoken(o));
		if (!o.running && o.mode !== "away") turnEnded();
		drawTitle();
	}
	if (o !== current) {
		// It stayed open for its turn, which has ended.
		if (before && !o.running && o.mode === "owner") leave(o);
		return;
	}
	if (shownSession !== o.session) {
		shownSession = o.session;
		feed.show(o.session, o.meta.workspaceDir || o.cwd);
	} else feed.changed();
	if (headFrame) return;
	headFrame = true;
	requestAnimationFrame(() => {
		headFrame = false;
		if (!current) return;
		const had = document.activeElement === $("composer-text");
		drawHead(current, headFacts(current));
		composer.commands(current.session.commands);
		drawTitle();
		// The box is not there in a session that is only watched.
		if (had && $("composer").hidden) $("session").focus();
	});
}

// -- What the person does

const attach = new Attach({
	list: $("files"), error: $("files-error"), button: $("attach"), input: $("pick"), text: $("composer-text"), target: $("story"), say,
	allowed: () => !!current && !$("composer-text").disabled,
});
const composer = new Composer($("composer"), $("composer-text"), $("commands"), (text) => {
	if (current?.mode !== "owner" || (!text.trim() && !attach.any)) return false;
	current.prompt(text.trim() ? text : "", attach.taken());
	feed.toEnd();
	return true;
});
const beginning = new Begin({
	form: $("new-form"), call,
	begun: (result, cwd) => {
		const meta = result._meta?.berth ?? {};
		openedFor(result.sessionId, cwd === "." ? meta.workspaceDir ?? "." : cwd).created(meta);
		location.hash = `#/s/${result.sessionId}`;
		sidebarSoon();
	},
});
const menu = new Menu({
	node: $("menu"), ask: $("confirm"), takeover: $("takeover"), call, say, current: () => current, title: () => $("title").textContent,
	deleted: (o) => {
		opened.delete(o.id);
		permissions.forget(o.id);
		sidebar.forget(o.id);
		if (current === o) current = null;
		location.hash = "#/";
		$("search").focus();
		say("Deleted");
	},
});

function cancel() {
	if (!current?.running) return;
	permissions.cancelled(current.id);
	current.cancel();
	say("Cancelling");
	composer.focus();
}

$("cancel").addEventListener("click", cancel);
$("again").addEventListener("click", () => current && load(current));
$("signout").addEventListener("click", () => signOut());
document.addEventListener("keydown", (e) => {
	if (!(e.ctrlKey || e.metaKey) || $("app").hidden) return;
	if (e.key === "." && current?.running && current.mode === "owner") {
		e.preventDefault();
		cancel();
	} else if (e.key === "k" && !document.querySelector("dialog[open]")) {
		e.preventDefault();
		menu.close();
		if (innerWidth < 760) location.hash = "#/";
		// On a narrow page the list is shown by the change of the address.
		setTimeout(() => $("search").focus());
	}
});
document.querySelector(".skip").addEventListener("click", (e) => {
	e.preventDefault();
	($("story").hidden || $("composer").hidden ? $("session") : $("composer-text")).focus();
});

// -- Start

for (const [id, name] of [["signout", "out"], ["send", "send"], ["cancel", "stop"], ["latest", "down"]]) $(id).append(icon(name));
$("new").prepend(icon("plus"));
$("empty-new").prepend(icon("plus"));
for (const a of document.querySelectorAll("a.back")) a.append(icon("back"));
if (/Mac|iPhone|iPad/.test(navigator.platform)) for (const k of document.querySelectorAll("kbd")) if (k.textContent === "Ctrl") k.replaceWith(el("kbd", {text: "⌘"}));
colours($("theme"));
if (signIn.kept === null) askForToken();
else connect(signIn.kept);
