// A gateway of its own for one test: configuration, data, the project that
// sessions work in, a model that plays a script, and tokens.
import {execFileSync, spawn} from "node:child_process";
import {existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const here = dirname(dirname(fileURLToPath(import.meta.url)));

/** out is where pictures are left for looking at. */
export const out = join(here, "out");
mkdirSync(out, {recursive: true});

let built;

/** binary returns the program under test, building it once if need be. */
export function binary() {
  if (process.env.BERTH_BIN) return process.env.BERTH_BIN;
  if (!built) {
    built = join(out, "berth");
    execFileSync("go", ["build", "-o", built, "./cmd/berth"], {cwd: join(here, "..", ".."), stdio: "inherit"});
  }
  return built;
}

/** until resolves with what look returns once that is true, asking again at each change. */
export async function until(look, what, ms = 60_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: nothing after ${ms} ms`);
    await new Promise((done) => setTimeout(done, 25));
  }
}

export class Daemon {
  log = "";

  constructor(t, {script, config = "", files = {}, gateway = ""}) {
    this.dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-console-")));
    this.config = join(this.dir, "config");
    this.data = join(this.dir, "data");
    this.project = join(this.dir, "harbour");
    for (const d of [this.config, this.project]) mkdirSync(d);
    writeFileSync(join(this.config, "play.script"), script);
    writeFileSync(join(this.config, "config.toml"), `version = 1
[gateway]
listen = "127.0.0.1:0"
${gateway}
[providers.play]
type = "scripted"
script = "play.script"
models = {script = {context_window = 200000}}
[agents.main]
model = "play/script"
title = "Harbour master"
description = "Looks after the harbour"
${config}`);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.project, name)), {recursive: true});
      writeFileSync(join(this.project, name), text);
    }
    t?.after(() => this.end());
  }

  get flags() {
    return ["--config-dir", this.config, "--data-dir", this.data];
  }

  get env() {
    return {HOME: this.dir, PATH: process.env.PATH, ...(process.env.TMPDIR ? {TMPDIR: process.env.TMPDIR} : {})};
  }

  /** token makes a token and returns it. */
  token(...flags) {
    const made = execFileSync(binary(), ["token", "create", "--json", ...flags, ...this.flags], {env: this.env, encoding: "utf8"});
    return JSON.parse(made).token;
  }

  revoke(name) {
    execFileSync(binary(), ["token", "revoke", name, ...this.flags], {env: this.env});
  }

  /** start serves; this.url is where. */
  async start() {
    this.child = spawn(binary(), ["daemon", ...this.flags], {env: this.env, cwd: this.project, stdio: ["ignore", "ignore", "pipe"]});
    this.child.stderr.setEncoding("utf8").on("data", (s) => (this.log += s));
    this.gone = new Promise((done) => this.child.on("exit", done));
    let over = false;
    this.gone.then(() => (over = true));
    const file = join(this.data, "daemon.json");
    const info = await until(() => {
      if (over) throw new Error(`the daemon ended: ${this.log}`);
      return existsSync(file) && JSON.parse(readFileSync(file, "utf8"));
    }, "daemon.json");
    this.url = info.url.replace(/^ws/, "http").replace(/\/acp$/, "/");
    return this;
  }

  /** again starts it once more, where it was. */
  async again() {
    const file = join(this.config, "config.toml");
    writeFileSync(file, readFileSync(file, "utf8").replace(/listen = .*/, `listen = "${new URL(this.url).host}"`));
    rmSync(join(this.data, "daemon.json"), {force: true});
    return this.start();
  }

  async stop(signal = "SIGTERM") {
    this.child?.kill(signal);
    await this.gone;
  }

  async end() {
    await this.stop("SIGKILL");
    rmSync(this.dir, {recursive: true, force: true, maxRetries: 3});
  }

  read(name) {
    return readFileSync(join(this.project, name), "utf8");
  }
}
