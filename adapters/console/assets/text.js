// Text of others, made fit to be seen. Pure functions.

// What turns the order of letters round is shown as its number everywhere:
// it has no honest use in what a person judges by.
const TURNING = /[\u202a-\u202e\u2066-\u2069]/gu;
// What cannot be seen at all is shown in code, names and commands. Joiners stay
// in prose, where scripts and emoji need them.
const HIDDEN =
	/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/gu;
// Colours and cursor movements of terminals.
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

const mark = (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** prose makes running text safe to read: letters keep their order. */
export function prose(s) {
	return s.replace(TURNING, mark).replace(CONTROL, mark);
}

/** exact shows everything that is there: for names, commands, code, diffs. */
export function exact(s) {
	return s.replace(HIDDEN, mark);
}

/** output is what a terminal printed, without its colours. */
export function output(s) {
	return exact(s.replace(ANSI, "").replace(/\r\n/g, "\n").replace(/\r/g, "\n"));
}

/** line makes one line of a text, at most n letters. */
export function line(s, n = 200) {
	const flat = exact(String(s ?? "").replace(/\s+/g, " ").trim());
	const letters = Array.from(flat.slice(0, 2 * n + 2));
	return letters.length > n ? letters.slice(0, n - 1).join("") + "…" : flat;
}

/** href returns an address that may be followed, or "". */
export function href(s) {
	const address = String(s).trim();
	if (!/^(https?:\/\/|mailto:)/i.test(address) || HIDDEN.test(address)) {
		HIDDEN.lastIndex = 0;
		return "";
	}
	try {
		const u = new URL(address);
		return u.username || u.password ? "" : u.href;
	} catch {
		return "";
	}
}

/** shortPath keeps the end of a path, which tells the most. */
export function shortPath(path, base = "") {
	const p = String(path ?? "");
	if (base && p.startsWith(base.replace(/\/+$/, "") + "/")) return exact(p.slice(base.replace(/\/+$/, "").length + 1));
	return exact(p);
}

/** lastPart is the name at the end of a path. */
export function lastPart(path) {
	return exact(String(path ?? "").replace(/\/+$/, "").split("/").pop() || String(path ?? ""));
}

/** count writes 12345 as 12.3k. */
export function count(n) {
	if (!(n >= 0)) return "0";
	if (n < 1000) return String(Math.round(n));
	if (n < 1e6) return (n / 1e3).toFixed(n < 1e4 ? 1 : 0) + "k";
	return (n / 1e6).toFixed(n < 1e7 ? 1 : 0) + "M";
}

/** money writes an amount; small ones keep two digits that say something. */
export function money(amount, currency = "USD") {
	if (!Number.isFinite(amount)) return "";
	const digits = amount >= 1 || amount === 0 ? 2 : Math.min(6, 1 - Math.floor(Math.log10(amount)));
	const text = amount.toFixed(Math.max(2, digits));
	return currency === "USD" ? "$" + text : `${text} ${line(currency, 8)}`;
}

/** size writes bytes. */
export function size(n) {
	if (n < 1024) return `${n} B`;
	if (n < 1 << 20) return `${(n / 1024).toFixed(1)} KiB`;
	return `${(n / (1 << 20)).toFixed(1)} MiB`;
}

/** ago says how long ago a time was. */
export function ago(iso, now = Date.now()) {
	const t = Date.parse(iso);
	if (Number.isNaN(t)) return "";
	const s = Math.max(0, Math.round((now - t) / 1000));
	if (s < 45) return "now";
	if (s < 3600) return `${Math.max(1, Math.round(s / 60))} min`;
	if (s < 86400) return `${Math.round(s / 3600)} h`;
	if (s < 30 * 86400) return `${Math.round(s / 86400)} d`;
	return new Date(t).toISOString().slice(0, 10);
}
