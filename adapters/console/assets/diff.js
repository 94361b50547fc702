// Differences of two texts, line by line. Pure functions.

const LIMIT = 1200; // edits that are looked for before lines count as replaced

/** split makes lines of a text; the last newline begins no line. */
export function split(text) {
	if (text === "" || text == null) return [];
	const lines = text.split("\n");
	if (lines[lines.length - 1] === "") lines.pop();
	return lines.map((l) => (l.endsWith("\r") ? l.slice(0, -1) : l));
}

/**
 * hunks compares two texts and returns what changed with some lines around:
 * [{old, new, lines: [{op: " " | "-" | "+", text, old?, new?}]}], line numbers
 * from 1. An absent old text is a new file.
 */
export function hunks(oldText, newText, around = 3) {
	const rows = compare(split(oldText ?? ""), split(newText ?? ""));
	const list = [];
	let hunk = null;
	let quiet = 0;
	rows.forEach((row, i) => {
		if (row.op !== " ") {
			if (!hunk) {
				const from = Math.max(list.length ? list[list.length - 1].end : 0, i - around);
				hunk = {begin: from, end: 0};
				list.push(hunk);
			}
			quiet = 0;
			hunk.end = i + 1;
		} else if (hunk && ++quiet > 2 * around) {
			hunk.end = i - quiet + 1 + around;
			hunk = null;
		}
	});
	if (hunk) hunk.end = Math.min(rows.length, hunk.end + around);
	return list.map(({begin, end}) => {
		const lines = rows.slice(begin, end);
		const first = (side) => lines.find((l) => l[side])?.[side] ?? 0;
		return {old: first("old"), new: first("new"), lines};
	});
}

/** stat counts the lines that came and went. */
export function stat(list) {
	let added = 0;
	let removed = 0;
	for (const h of list) {
		for (const l of h.lines) {
			if (l.op === "+") added++;
			if (l.op === "-") removed++;
		}
	}
	return {added, removed};
}

function compare(a, b) {
	let head = 0;
	while (head < a.length && head < b.length && a[head] === b[head]) head++;
	let tail = 0;
	while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
	const rows = [];
	let o = 0;
	let n = 0;
	const put = (op) => {
		if (op === " ") rows.push({op, text: b[n], old: ++o, new: ++n});
		else if (op === "-") rows.push({op, text: a[o], old: ++o});
		else rows.push({op, text: b[n], new: ++n});
	};
	for (let i = 0; i < head; i++) put(" ");
	for (const op of script(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) put(op);
	for (let i = 0; i < tail; i++) put(" ");
	return rows;
}

/** script is the shortest way from a to b (Myers), as long as it is short. */
function script(a, b) {
	const replaced = () => [...a.map(() => "-"), ...b.map(() => "+")];
	if (!a.length || !b.length) return replaced();
	const most = Math.min(a.length + b.length, LIMIT);
	const trace = [];
	let v = new Map([[1, 0]]);
	for (let d = 0; d <= most; d++) {
		const next = new Map();
		for (let k = -d; k <= d; k += 2) {
			let x = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? v.get(k + 1) : v.get(k - 1) + 1;
			let y = x - k;
			while (x < a.length && y < b.length && a[x] === b[y]) {
				x++;
				y++;
			}
			next.set(k, x);
			if (x >= a.length && y >= b.length) {
				trace.push(v);
				return back(trace, a.length, b.length);
			}
		}
		trace.push(v);
		v = next;
	}
	return replaced();
}

function back(trace, x, y) {
	const ops = [];
	for (let d = trace.length - 1; d >= 0 && (x > 0 || y > 0); d--) {
		const v = trace[d];
		const k = x - y;
		const down = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
		const px = d === 0 ? 0 : v.get(down ? k + 1 : k - 1);
		const py = d === 0 ? 0 : px - (down ? k + 1 : k - 1);
		while (x > px && y > py) {
			ops.push(" ");
			x--;
			y--;
		}
		if (d > 0) {
			ops.push(down ? "+" : "-");
			x = px;
			y = py;
		}
	}
	// Between equal lines removals come first: that is how people read it.
	const forward = ops.reverse();
	const sorted = [];
	for (let i = 0; i < forward.length; ) {
		if (forward[i] === " ") {
			sorted.push(forward[i++]);
			continue;
		}
		let j = i;
		while (j < forward.length && forward[j] !== " ") j++;
		const run = forward.slice(i, j);
		sorted.push(...run.filter((o) => o === "-"), ...run.filter((o) => o === "+"));
		i = j;
	}
	return sorted;
}
