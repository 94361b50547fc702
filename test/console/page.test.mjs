// The console in headless Chromium, against the built program.
import assert from "node:assert/strict";
import {createServer} from "node:http";
import {after, before, describe, test} from "node:test";
import {Daemon, until} from "./lib/daemon.mjs";
import {browser, Console, missing} from "./lib/page.mjs";

const skip = await missing();

const tides = "# Tides at the harbour\n\nHeights above chart datum.\n\n| time | height |\n|---|---|\n| 06:12 | 4.4 m |\n| 12:20 | 0.9 m |\n| 18:40 | 4.1 m |\n\nSource: almanac.\n";
const plan = (a, b, c) => `call update_plan ${JSON.stringify({entries: [
  {content: "Read the tide table", priority: "high", status: a}, {content: "Correct the evening height", priority: "medium", status: b}, {content: "Run the checks", priority: "low", status: c},
]})}`;
const edit = 'call edit_file {"path":"tides.md","edits":[{"old_text":"| 18:40 | 4.1 m |","new_text":"| 18:40 | 4.6 m |\\n| 23:55 | 0.7 m |"}]}';
const answer = JSON.stringify(`## What changed

The evening tide is **4.6 m** now, as the [almanac](https://example.org/almanac) has it:

1. checked the table
2. kept the order of lines
   - morning untouched
   - evening corrected

| time | height | change |
|---|--:|---|
| 18:40 | 4.6 m | +0.5 m |

\`\`\`go
// Height returns metres above chart datum.
func Height(t time.Time) float64 {
	return base + amplitude*math.Cos(phase(t))
}
\`\`\`

> Mind the bar at low water.

Run \`make check\` to see it yourself.`);
const hostile = JSON.stringify('<img src=x onerror="document.title=1"><script>document.title=2</script> [click](javascript:document.title=3) ![pic](https://tracker.example/x.png) \u202egpj.exe\u202c **<b>bold</b>**');

// What the model plays, by a word of the prompt.
const script = `--- next when "correct the evening"
thought "The person wants the tide table corrected. First I read it."
text "I will look at the **tide table** first.\\n"
${plan("in_progress", "pending", "pending")}
call read_file {"path":"tides.md"}
usage input=1200 output=180 cost=0.0042
--- next when "correct the evening"
text "The evening height is wrong.\\n"
${plan("completed", "in_progress", "pending")}
${edit}
usage input=1500 output=120 cost=0.0051
--- next when "correct the evening"
call shell {"command":"touch checked && wc -l tides.md"}
usage input=1700 output=40 cost=0.003
--- next when "correct the evening"
text ${answer}
usage input=2100 output=420 cost=0.0125
--- next when "touch it"
call write_file {"path":"log.txt","content":"high water\\n"}
--- next when "touch it"
text "As you decided."
--- next when "slowly"
text "begin "
chunks 60 "word " every 50ms
text "end of it"
--- next when "patiently"
text "begin "
chunks 60 "word " every 150ms
text "end of it"
--- next when "forever"
text "It begins"
hang
--- next when "hostile"
text ${hostile}
call write_file {"path":"<img src=x>.txt","content":"\\u202egpj.exe <img src=y>\\n"}
--- next when "hostile"
text "Done."
--- next when "very much"
chunks 10000 "Lorem ipsum dolor.\\n\\n"
text "the last of it"
--- next always
text "Nothing to say."
`;

describe("the console", {skip, concurrency: false}, () => {
  let b;
  let d;
  let token;
  let watching; // a token that may observe alone
  let brief; // a token that is revoked
  const afters = [];

  before(async () => {
    d = new Daemon({after: (fn) => afters.push(fn)}, {script, files: {"tides.md": tides}});
    token = d.token("--name", "person");
    watching = d.token("--name", "wall", "--observe");
    brief = d.token("--name", "brief");
    await d.start();
    b = await browser({after: (fn) => afters.push(fn)});
  });
  after(async () => {
    for (const fn of afters.reverse()) await fn();
  });

  // A signed-in probe is answered by a refusal that is none: no upgrade was asked for.
  const allow = ["/acp"];

  /** tab opens a tab of its own, which shares nothing with others, and signs in. */
  async function tab(t, options = {}) {
    const context = await b.createBrowserContext();
    t.after(() => context.close());
    const c = await Console.open(b, d, {context, allow, ...options});
    if (options.signIn !== false) await c.signIn(options.token ?? token);
    t.after(() => assert.deepEqual(c.problems, [], "what the browser complained of"));
    return c;
  }

  const items = (c) => c.page.$$eval("#feed .items > *", (all) => all.map((e) => `${e.className.split(" ")[0]}:${e.innerText.slice(0, 60)}`));

  test("signs in with a right token alone, and keeps it in the tab", async (t) => {
    const c = await tab(t, {signIn: false});
    await c.page.waitForSelector("#token", {visible: true});
    await c.shot("signin-light");
    for (const [typed, says] of [["", /asks for a token/], ["a b", /no token/], ["berth_wrong", /does not know/]]) {
      await c.page.type("#token", typed);
      await c.page.keyboard.press("Enter");
      await c.sees(says, "#token-error");
      await c.page.$eval("#token", (e) => (e.value = ""));
    }
    await c.signIn(token);
    const kept = await c.page.evaluate(() => ({url: location.href, local: JSON.stringify(localStorage), cookie: document.cookie, field: document.getElementById("token").value, tab: Object.values(sessionStorage)}));
    assert.ok(![kept.url, kept.local, kept.cookie, kept.field].some((s) => s.includes(token)));
    assert.deepEqual(kept.tab, [token]);
    assert.ok(!d.log.includes(token), "the token is in the log");
    await c.page.reload();
    await c.page.waitForSelector("#app:not([hidden])");
    await c.page.click("#signout");
    await c.page.waitForSelector("#token", {visible: true});
    assert.equal(await c.page.evaluate(() => sessionStorage.length), 0);
  });

  test("tells a story: thoughts, calls, plan, permission, diff, usage", async (t) => {
    const c = await tab(t);
    await c.begin();
    await c.prompt("Please correct the evening tide in tides.md, and run the checks.");
    const asked = await c.asked();
    assert.match(asked, /Edit tides\.md/);
    assert.match(asked, /4\.1 m[\s\S]*4\.6 m/);
    await c.shot("permission-light");
    await c.quiet();
    await c.page.keyboard.press("y");
    await c.sees("touch checked", "#ask");
    await c.quiet();
    await c.page.keyboard.press("1");
    await c.sees("What changed");
    await c.idle();
    assert.match(d.read("tides.md"), /4\.6 m/);
    assert.match(await c.text("#usage"), /k \/ 200k/);
    await c.sees("Plan 1/3", "#plan");
    await c.shot("story-light");
    await c.page.emulateMediaFeatures([{name: "prefers-color-scheme", value: "dark"}]);
    await c.shot("story-dark");
    const [bg, text] = await c.page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]);
    const sum = (s) => s.match(/\d+/g).slice(0, 3).reduce((a, x) => a + Number(x), 0);
    assert.ok(sum(bg) < 150 && sum(text) > 500, `${text} on ${bg}`);
    await c.page.click("#theme");
    assert.ok(sum(await c.page.evaluate(() => getComputedStyle(document.body).backgroundColor)) > 600, "the switch");
    await c.page.click("#theme");
    await c.page.setViewport({width: 360, height: 740});
    await until(() => c.page.evaluate(() => getComputedStyle(document.getElementById("sidebar")).display === "none"), "the narrow page");
    await c.shot("story-narrow-dark");
    await c.page.$eval(".diff", (e) => e.scrollIntoView({block: "center"}));
    await c.shot("diff-narrow-dark");
    assert.ok(await c.page.evaluate(() => document.documentElement.scrollWidth <= 360 && document.getElementById("feed").scrollWidth <= 360), "it scrolls sideways");
    const unnamed = await c.page.$$eval("button, a, input, textarea, select, summary", (all) =>
      all.filter((e) => !e.hidden && !(e.getAttribute("aria-label") || e.textContent.trim() || (e.id && document.querySelector(`label[for="${e.id}"]`)))).map((e) => e.outerHTML));
    assert.deepEqual(unnamed, [], "controls without a name");
  });

  test("a question is answered on purpose alone", async (t) => {
    const c = await tab(t, {width: 360, height: 740});
    await c.begin();
    // Keys are pressed within the page: how far apart they come from outside is up to the machine.
    await c.page.evaluate(() => {
      const dialog = document.getElementById("ask");
      window.type = (keys) => {
        for (const key of keys) dialog.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
      };
      new MutationObserver(() => dialog.open && window.type("y")).observe(dialog, {attributeFilter: ["open"]});
    });
    await c.prompt("touch it");
    await c.asked();
    assert.equal(await c.page.evaluate(() => document.activeElement.id), "ask-title");
    await c.page.evaluate(() => window.type("xyyy111")); // the first one answers nothing at any time
    await c.page.keyboard.type("\n ");
    assert.ok(await c.page.$("#ask[open]"), "typing answered");
    await c.shot("permission-narrow-light");
    await c.page.keyboard.press("Escape");
    await c.page.waitForSelector("#ask-banner:not([hidden])");
    await c.sees("asks", ".call .status");
    assert.equal(await c.page.$("#ask[open]"), null);
    await c.page.click("#ask-banner button");
    await c.asked();
    await c.page.evaluate(() => [...document.querySelectorAll("#ask .reject")][0].click());
    await c.sees("As you decided.");
    await c.idle();
    await c.sees("failed", ".call .status");
    assert.equal(await c.page.$("#ask[open]"), null);
  });

  test("cancels, also while a question is open", async (t) => {
    const c = await tab(t);
    await c.begin();
    await c.prompt("run forever");
    await c.sees("It begins");
    await c.page.click("#cancel");
    await c.sees("Cancelled");
    await c.idle();
    await c.prompt("touch it");
    await c.asked();
    await c.page.keyboard.press("Escape");
    await c.page.click("#cancel");
    await c.idle();
    await c.page.waitForSelector("#ask-banner", {hidden: true});
    assert.equal((await items(c)).filter((i) => i.startsWith("end") && i.includes("Cancelled")).length, 2);
  });

  test("a reload shows that a turn was cancelled, and so it is seen by who watches", async (t) => {
    const c = await tab(t);
    const watching = await tab(t);
    await c.begin();
    await c.prompt("run forever");
    await c.sees("It begins");
    const hash = await c.page.evaluate(() => location.hash);
    await watching.page.evaluate((hash) => (location.hash = hash), hash);
    await watching.sees("It begins");
    await c.page.click("#cancel");
    await c.sees("Cancelled");
    await watching.sees("Cancelled");
    await c.idle();
    await c.page.reload();
    await c.sees("Cancelled");
    assert.equal((await items(c)).filter((i) => i.startsWith("end") && i.includes("Cancelled")).length, 1);
    assert.equal((await items(watching)).filter((i) => i.startsWith("end") && i.includes("Cancelled")).length, 1);
  });

  test("prompts wait for their turn, in order", async (t) => {
    const c = await tab(t);
    await c.begin();
    await c.prompt("slowly");
    await c.sees("begin");
    await c.prompt("and then?");
    await c.sees("and then?", "#queue");
    await c.sees("Nothing to say.");
    await c.idle();
    const order = (await items(c)).map((i) => i.split(":")[0]).filter((n) => n !== "end");
    assert.deepEqual(order, ["message", "message", "message", "message"]);
    assert.match(await c.text(), /slowly[\s\S]*end of it[\s\S]*and then\?[\s\S]*Nothing to say/);
  });

  test("a reload in mid-turn shows everything once, and the turn goes on", async (t) => {
    const c = await tab(t);
    const id = await c.begin();
    await c.prompt("patiently");
    await c.sees(/begin (word ){5}/);
    await c.page.reload();
    await c.page.waitForSelector("#app:not([hidden])");
    assert.equal(await c.session(), id);
    await c.sees(/begin (word ){5}/);
    await c.page.waitForSelector("#working:not([hidden])");
    await c.sees("end of it");
    await c.idle();
    const text = await c.text();
    assert.equal(text.match(/word/g).length, 60);
    assert.equal(text.match(/patiently/g).length, 1);
  });

  test("a question outlives a reload", async (t) => {
    const c = await tab(t);
    await c.begin();
    await c.prompt("touch it");
    await c.asked();
    await c.page.reload();
    await c.asked();
    await c.quiet();
    await c.page.keyboard.press("n");
    await c.sees("As you decided.");
    await c.idle();
    assert.equal((await items(c)).filter((i) => i.startsWith("call")).length, 1);
  });

  test("a lost socket comes back, nothing twice and nothing missing", async (t) => {
    const c = await tab(t, {signIn: false});
    await c.page.evaluateOnNewDocument(() => {
      const Socket = window.WebSocket;
      window.sockets = [];
      window.banners = []; // what was shown, for however short a time
      addEventListener("DOMContentLoaded", () => {
        const link = document.getElementById("link");
        new MutationObserver(() => window.banners.push(link.textContent)).observe(link, {childList: true, subtree: true, characterData: true});
      });
      window.WebSocket = class extends Socket {
        constructor(...a) {
          super(...a);
          window.sockets.push(this);
        }
      };
    });
    await c.page.reload();
    await c.signIn(token);
    await c.begin();
    await c.prompt("slowly");
    for (let n = 1; n <= 2; n++) {
      await c.sees(new RegExp(`begin (word ){${n * 8}}`));
      await c.page.evaluate(() => {
        window.banners.length = 0;
        window.sockets.at(-1).close(4002, "lost");
      });
      await until(() => c.page.evaluate(() => window.banners.some((s) => s.includes("connection is lost"))), "the connection is lost");
      await until(() => c.page.evaluate((n) => window.sockets.length > n && window.sockets.at(-1).readyState === 1, n), "another socket");
    }
    await c.sees("end of it");
    await c.idle();
    const text = await c.text();
    assert.equal(text.match(/word/g).length, 60);
    assert.equal(text.match(/slowly/g).length, 1);
  });

  test("a gateway that was killed comes back, and says what was cut off", async (t) => {
    const own = new Daemon(t, {script, files: {"tides.md": tides}});
    const key = own.token();
    await own.start();
    const context = await b.createBrowserContext();
    t.after(() => context.close());
    const c = await Console.open(b, own, {context, allow: ["/acp"]});
    await c.signIn(key);
    await c.begin();
    await c.prompt("slowly");
    await c.sees(/begin (word ){5}/);
    await own.stop("SIGKILL");
    await c.sees("connection is lost", "#link");
    await own.again();
    await c.page.waitForSelector("#send:not(:disabled)", {timeout: 60_000});
    await c.page.waitForSelector("#link", {hidden: true});
    assert.equal((await c.text()).match(/slowly/g).length, 1);
    await c.prompt("and then?");
    await c.sees("Nothing to say.");
  });

  test("another's session is watched, and taken over on purpose", async (t) => {
    const one = await tab(t);
    const two = await tab(t);
    const id = await one.begin();
    await one.prompt("slowly");
    await one.sees("begin");
    await two.page.evaluate((id) => (location.hash = `#/s/${id}`), id);
    await two.sees("You are watching", "#mode");
    await two.sees(/begin (word ){5}/);
    await two.sees("slowly");
    await two.shot("watching-light");
    assert.equal(await two.page.$eval("#composer-text", (e) => e.disabled), true);
    await two.page.click("#takeover");
    await two.sees("Take this session over?", "#confirm");
    await two.page.evaluate(() => document.querySelector("#confirm .primary").click());
    await two.page.waitForSelector("#send:not(:disabled)");
    await one.sees("taken this session over", "#mode");
    for (const c of [one, two]) {
      await c.sees("end of it");
      await c.page.waitForFunction(() => document.getElementById("working").hidden);
      const text = await c.text();
      assert.equal(text.match(/word/g).length, 60);
      assert.equal(text.match(/slowly/g).length, 1);
    }
    await two.prompt("and then?");
    await two.sees("Nothing to say.");
    await one.sees("Nothing to say.");
    await one.sees("and then?");
  });

  test("a question that two see is answered by one", async (t) => {
    const one = await tab(t);
    const two = await tab(t);
    const id = await one.begin();
    await two.page.evaluate((id) => (location.hash = `#/s/${id}`), id);
    await two.sees("You are watching", "#mode");
    await one.prompt("touch it");
    await one.asked();
    await two.asked();
    await two.quiet();
    await two.page.keyboard.press("n");
    await one.page.waitForFunction(() => !document.getElementById("ask").open);
    for (const c of [one, two]) await c.sees("As you decided.");
    assert.equal(await two.page.$("#ask[open]"), null);
  });

  test("a gateway that asks for no token is entered without one", async (t) => {
    const own = await new Daemon(t, {script, gateway: 'auth = "none"'}).start();
    const context = await b.createBrowserContext();
    t.after(() => context.close());
    const c = await Console.open(b, own, {context, allow: ["/acp"]});
    await c.signIn("");
    await c.begin("");
    await c.prompt("hello");
    await c.sees("Nothing to say.");
    await c.page.reload();
    await c.sees("Nothing to say.");
  });

  test("a token that may only observe only watches", async (t) => {
    const one = await tab(t);
    const id = await one.begin();
    await one.prompt("hello there");
    await one.sees("Nothing to say.");
    const wall = await tab(t, {token: watching});
    await wall.sees(/hello there/i, "#sessions");
    await wall.page.evaluate((id) => (location.hash = `#/s/${id}`), id);
    await wall.sees("Nothing to say.");
    await wall.sees("may do nothing else", "#mode");
    assert.deepEqual(await wall.page.$$eval("#new, #takeover, #delete", (all) => all.map((e) => e.hidden)), [true, true, true]);
    assert.equal(await wall.page.$eval("#composer-text", (e) => e.disabled), true);
  });

  test("what models and tools say is text", async (t) => {
    const c = await tab(t);
    await c.begin();
    await c.prompt("be hostile");
    const asked = await c.asked();
    assert.match(asked, /<img src=x>\.txt/);
    assert.match(asked, /U\+202E/);
    assert.ok(!asked.includes("\u202e"));
    await c.page.evaluate(() => [...document.querySelectorAll("#ask .reject")][0].click());
    await c.sees("Done.");
    await c.idle();
    const found = await c.page.evaluate(() => ({
      elements: document.querySelectorAll("#feed img, #feed script, #feed iframe, #feed b, #feed [onerror]").length,
      links: [...document.querySelectorAll("#feed a")].map((a) => [a.href, a.rel, a.target]),
      title: document.title, turned: document.getElementById("feed").textContent.includes("\u202e"),
    }));
    assert.equal(found.elements, 0);
    assert.deepEqual(found.links, [["https://tracker.example/x.png", "noopener noreferrer nofollow", "_blank"]]);
    assert.ok(!/^[123]$/.test(found.title));
    assert.equal(found.turned, false);
    // The page itself may not make HTML of a string either.
    assert.equal(await c.page.evaluate(() => {
      try {
        document.createElement("p").innerHTML = "<b>x</b>";
        return "made";
      } catch {
        return "refused";
      }
    }), "refused");
    c.problems = c.problems.filter((p) => !/TrustedHTML/.test(p));
  });

  test("long sessions stay small on the page", async (t) => {
    const c = await tab(t);
    const id = await c.begin();
    await c.prompt("very much");
    await c.sees("the last of it");
    await c.idle();
    for (let i = 0; i < 3; i++) {
      await c.prompt(`more ${i}`);
      await c.idle();
    }
    await c.page.evaluate(() => (location.hash = "#/"));
    await c.page.waitForSelector("#story", {hidden: true});
    await c.page.evaluate((id) => (location.hash = `#/s/${id}`), id);
    await c.sees("more 2");
    await c.idle();
    const end = await c.page.$eval("#feed", (e) => e.scrollHeight - e.scrollTop - e.clientHeight);
    assert.ok(end < 80, `${end} px from the end`);
  });

  test("ten thousand updates keep the page light", async (t) => {
    const c = await tab(t);
    await c.begin();
    const seen = await c.page.evaluate(async () => {
      const [{Session}, {Feed}] = [await import("/state.js"), await import("/view.js")];
      const box = document.getElementById("feed");
      const feed = new Feed(box, document.getElementById("latest"));
      const session = new Session("s");
      feed.show(session);
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      let longest = 0;
      let most = 0;
      for (let i = 0; i < 10_000; i++) {
        const n = i >> 2;
        session.apply([
          {sessionUpdate: "agent_message_chunk", messageId: `m${n >> 3}`, content: {type: "text", text: `Some **words** of part ${n}.\n\n`}},
          {sessionUpdate: "tool_call", toolCallId: `c${n}`, title: `Edit file${n}.go`, kind: "edit", status: "in_progress"},
          {sessionUpdate: "tool_call_update", toolCallId: `c${n}`, content: [{type: "diff", path: `/p/file${n}.go`, oldText: "a\nb\nc\n", newText: `a\n${n}\nc\n`}]},
          {sessionUpdate: "tool_call_update", toolCallId: `c${n}`, status: "completed"},
        ][i & 3]);
        if (i % 100 === 99) {
          feed.changed();
          const began = performance.now();
          await frame();
          await frame();
          longest = Math.max(longest, performance.now() - began);
          most = Math.max(most, box.querySelectorAll(".items > *").length);
        }
      }
      // What is costly to draw is drawn less often; the end is there all the same.
      while (!box.textContent.includes("Edit file2499.go")) await frame();
      const end = box.scrollHeight - box.scrollTop - box.clientHeight;
      const earlier = box.querySelector(".more").textContent;
      box.querySelector(".more").click();
      return {items: session.items.length, most, end, earlier, after: box.querySelectorAll(".items > *").length, longest: Math.round(longest)};
    });
    t.diagnostic(JSON.stringify(seen));
    assert.ok(seen.items > 2_500);
    assert.ok(seen.most <= 500, `${seen.most} items on the page`);
    assert.ok(seen.end < 80, `${seen.end} px from the end`);
    assert.match(seen.earlier, /Show earlier \(\d+ more\)/);
    assert.ok(seen.after > 150);
  });

  test("lists, searches, deletes", async (t) => {
    const c = await tab(t);
    const id = await c.begin();
    await c.prompt("a rare albatross");
    await c.sees("Nothing to say.");
    await c.sees("albatross", "#sessions");
    await c.page.type("#search", "ALBATROSS");
    await until(async () => (await c.page.$$("#sessions a")).length === 1, "one session");
    await c.page.$eval("#search", (e) => {
      e.value = "no such thing";
      e.dispatchEvent(new Event("input"));
    });
    await c.sees("No session matches", "#sessions-status");
    await c.page.$eval("#search", (e) => {
      e.value = "";
      e.dispatchEvent(new Event("input"));
    });
    await c.page.click("#menu summary");
    await c.page.click("#delete");
    await c.sees("Delete this session?", "#confirm");
    await c.page.keyboard.press("Escape");
    assert.equal(await c.session(), id);
    await c.page.click("#menu summary");
    await c.page.click("#delete");
    await c.page.waitForSelector("#confirm[open] .danger");
    await c.page.click("#confirm .danger");
    await c.page.waitForSelector("#story", {hidden: true});
    await until(async () => !(await c.text("#sessions")).includes("albatross"), "the session gone from the list");
  });

  test("commands are offered behind a slash", async (t) => {
    const c = await tab(t);
    await c.begin();
    await c.page.focus("#composer-text");
    await c.page.keyboard.type("/");
    await c.page.waitForSelector("#commands:not([hidden]) li");
    await c.shot("commands-light");
    await c.page.keyboard.press("Tab");
    assert.match(await c.page.$eval("#composer-text", (e) => e.value), /^\/\w+ $/);
    assert.equal(await c.page.$("#commands:not([hidden])"), null);
  });

  test("a session that there is not says so", async (t) => {
    const c = await tab(t);
    await c.page.evaluate(() => (location.hash = "#/s/00000000-0000-4000-8000-000000000000"));
    await c.sees("00000000-0000-4000-8000-000000000000", "#trouble");
  });

  test("a reload keeps the session where it works", async (t) => {
    const c = await tab(t);
    await c.begin();
    await c.prompt("hello");
    await c.sees("Nothing to say.");
    await c.page.reload();
    await c.sees("Nothing to say.");
    await c.idle();
    assert.match(await c.text("#sub"), new RegExp(d.project));
    await c.prompt("touch it");
    assert.match(await c.asked(), new RegExp(`${d.project}/log.txt`));
    await c.page.keyboard.press("Escape");
    await c.page.click("#cancel");
    await c.idle();
  });

  test("a directory that is none is told at the field", async (t) => {
    const c = await tab(t);
    await c.page.evaluate(() => (location.hash = "#/new"));
    await c.page.waitForSelector("#cwd", {visible: true});
    await c.page.type("#cwd", "/no/such/place");
    await c.page.keyboard.press("Enter");
    await c.sees(/\/no\/such\/place/, "#new-error");
  });

  test("revoking a token signs the page out", async (t) => {
    const c = await tab(t, {token: brief});
    d.revoke("brief");
    await c.page.waitForSelector("#token", {visible: true, timeout: 60_000});
    await c.sees(/revoked|does not know/, "#token-error");
    assert.equal(await c.page.evaluate(() => sessionStorage.length), 0);
  });

  test("pages of other origins are refused, and names that point here", async (t) => {
    const evil = createServer((req, res) => res.setHeader("Content-Type", "text/html").end("<title>evil</title>"));
    await new Promise((done) => evil.listen(0, "127.0.0.1", done));
    t.after(() => evil.close());
    const {port, host} = new URL(d.url);
    const context = await b.createBrowserContext();
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(`http://evil.test:${evil.address().port}/`);
    const tried = await page.evaluate(async (host, token) => {
      const socket = (protocols) => new Promise((done) => {
        const s = new WebSocket(`ws://${host}/acp`, protocols);
        s.onopen = () => done("open");
        s.onerror = () => done("refused");
      });
      const get = (path) => fetch(`http://${host}${path}`, {headers: {Authorization: `Bearer ${token}`}}).then((r) => r.text(), () => "refused");
      const frame = await new Promise((done) => {
        const f = document.createElement("iframe");
        f.onload = () => {
          try {
            done(f.contentDocument ? "readable" : "hidden");
          } catch {
            done("hidden");
          }
        };
        f.src = `http://${host}/`;
        document.body.append(f);
      });
      return [await socket(["acp.v1", `bearer.${token}`]), await socket([]), await get("/acp"), await get("/"), frame];
    }, host, token);
    assert.deepEqual(tried, ["refused", "refused", "refused", "refused", "hidden"]);
    const rebound = await page.goto(`http://rebound.test:${port}/`);
    assert.equal(rebound.status(), 403);
    assert.doesNotMatch(await rebound.text(), /Berth/);
  });

  test("loads in one round of requests", async (t) => {
    const c = await tab(t, {signIn: false});
    const rounds = await c.page.evaluate(() => {
      const all = performance.getEntriesByType("resource").filter((e) => /\.(js|css)$/.test(new URL(e.name).pathname));
      const first = Math.min(...all.map((e) => e.responseEnd));
      return {n: all.length, late: all.filter((e) => e.startTime > first && e.initiatorType === "other").map((e) => e.name), from: [...new Set(all.map((e) => new URL(e.name).host))]};
    });
    assert.ok(rounds.n > 10);
    assert.deepEqual(rounds.from, [new URL(d.url).host]);
    assert.deepEqual(rounds.late, []);
  });
});
