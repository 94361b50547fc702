// A headless Chromium, and what the tests do on the console's page.
import {existsSync} from "node:fs";
import {join} from "node:path";
import {out, until} from "./daemon.mjs";

/** chromium is the browser's path, or "" where there is none. */
export function chromium() {
  const known = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"];
  return known.find((p) => p && existsSync(p)) ?? "";
}

/** missing says why no browser can be driven; false when one can. */
export async function missing() {
  if (!chromium()) return "no Chromium: install it, or name it in CHROMIUM";
  try {
    await import("puppeteer-core");
  } catch {
    return "no driver: npm ci in test/console";
  }
  return false;
}

/** browser starts one that ends with the test. */
export async function browser(t) {
  const {default: puppeteer} = await import("puppeteer-core");
  const b = await puppeteer.launch({
    executablePath: chromium(), headless: true, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--host-resolver-rules=MAP *.test 127.0.0.1"],
  });
  t.after(() => b.close());
  return b;
}

/** Console is one tab with the console in it. */
export class Console {
  problems = []; // what the browser's console said, and requests that left the gateway

  static async open(b, daemon, {width = 1280, height = 860, scheme = "light", context, allow = [], before} = {}) {
    const c = new Console();
    c.page = await (context ?? b).newPage();
    c.daemon = daemon;
    c.page.setDefaultTimeout(60_000); // a busy machine is no fault of the page
    await c.page.setViewport({width, height});
    await c.page.emulateMediaFeatures([{name: "prefers-color-scheme", value: scheme}]);
    const fine = (text) => allow.some((a) => text.includes(a));
    c.page.on("console", (m) => ["error", "warn", "warning"].includes(m.type()) && !fine(m.text() + (m.location()?.url ?? "")) && c.problems.push(`${m.text()} ${m.location()?.url ?? ""}`));
    c.page.on("pageerror", (e) => c.problems.push(String(e)));
    c.page.on("request", (r) => {
      if (!/^(data|blob):/.test(r.url()) && new URL(r.url()).host !== new URL(daemon.url).host) c.problems.push(`a request to ${r.url()}`);
    });
    if (before) await c.page.evaluateOnNewDocument(before);
    await c.page.goto(daemon.url);
    return c;
  }

  async signIn(token) {
    await this.page.waitForSelector("#token", {visible: true});
    await this.page.type("#token", token);
    await this.page.keyboard.press("Enter");
    await this.page.waitForSelector("#app:not([hidden])");
    return this;
  }

  /** begin starts a session in a directory. */
  async begin(cwd = this.daemon.project) {
    await this.page.evaluate(() => (location.hash = "#/new"));
    await this.page.waitForSelector("#cwd", {visible: true});
    await this.page.type("#cwd", cwd);
    await this.page.keyboard.press("Enter");
    await this.page.waitForSelector("#send:not(:disabled)", {visible: true});
    return this.session();
  }

  session() {
    return this.page.evaluate(() => decodeURIComponent(location.hash.slice(4)));
  }

  async prompt(text) {
    await this.page.focus("#composer-text");
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
  }

  text(selector = "#feed") {
    return this.page.$eval(selector, (e) => e.innerText);
  }

  /** sees waits until the words stand in a part of the page. */
  sees(words, selector = "#feed") {
    return until(async () => {
      const text = await this.page.$$eval(selector, (all) => all.map((e) => e.textContent).join("\n"));
      return (words instanceof RegExp ? words.test(text) : text.includes(words)) && text;
    }, `${words} in ${selector}`).catch(async (err) => {
      await this.shot("failed");
      throw new Error(`${err.message}; there is: ${await this.page.$$eval(selector, (all) => all.map((e) => e.textContent).join("\n").slice(-1500))}; problems: ${this.problems.join("; ")}; log: ${this.daemon.log.slice(-1500)}`);
    });
  }

  /** idle waits until nothing runs. */
  idle() {
    return this.page.waitForFunction(() => document.getElementById("working").hidden && !document.getElementById("send").disabled, {timeout: 60_000});
  }

  async asked() {
    await this.page.waitForSelector("#ask[open]", {timeout: 60_000});
    return this.text("#ask");
  }

  /** frames waits until what changed is drawn. */
  frames() {
    return this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }

  /** quiet lets the time pass in which a dialog takes no keys. */
  quiet() {
    return this.page.evaluate(() => new Promise((done) => setTimeout(done, 600)));
  }

  shot(name) {
    return this.page.screenshot({path: join(out, `${name}.png`)});
  }
}
