// A home is a directory of its own for one test: configuration, data, the
// project that the session works in, and an environment with nothing else.
import {execFileSync} from "node:child_process";
import {mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const here = dirname(dirname(fileURLToPath(import.meta.url)));

/** out is where transcripts are left for reading. */
export const out = join(here, "out");
mkdirSync(out, {recursive: true});

/** patience is how many milliseconds are waited for anything. It matters only when something is wrong. */
export const patience = 60_000;

/** slack is what a promised time may be exceeded by on a machine that is busy with much else. */
export const slack = 20_000;

let built;

/** binary returns the program under test, building it once if need be. */
export function binary() {
  if (process.env.BERTH_BIN) return process.env.BERTH_BIN;
  if (!built) {
    built = join(out, process.platform === "win32" ? "berth.exe" : "berth");
    execFileSync("go", ["build", "-o", built, "./cmd/berth"], {cwd: join(here, "..", ".."), stdio: "inherit"});
  }
  return built;
}

export class Home {
  #closers = [];

  constructor(t, {config = "", script, files = {}} = {}) {
    // Canonical, because the agent's answers are (on macOS /var is a link).
    this.dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-interop-")));
    t.after(() => this.#leave());
    this.config = join(this.dir, "config");
    this.data = join(this.dir, "data");
    this.project = join(this.dir, "project");
    for (const d of [this.config, this.project]) mkdirSync(d);
    if (script !== undefined) {
      writeFileSync(join(this.config, "play.script"), script);
      config += '\n[providers.play]\ntype = "scripted"\nscript = "play.script"\n\n[agents.main]\nmodel = "play/script"\n';
    }
    if (config) writeFileSync(join(this.config, "config.toml"), `version = 1\n${config}`);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.project, name)), {recursive: true});
      writeFileSync(join(this.project, name), text);
    }
  }

  /** closing runs fn when the test ends, before the directory goes. */
  closing(fn) {
    this.#closers.push(fn);
  }

  async #leave() {
    const faults = [];
    for (const fn of this.#closers.reverse()) {
      try {
        await fn();
      } catch (e) {
        faults.push(e); // the others still have to end what they began
      }
    }
    rmSync(this.dir, {recursive: true, force: true, maxRetries: 3});
    if (faults.length > 0) throw faults[0];
  }

  /** command is the agent's command line. */
  get command() {
    return [binary(), "acp", "--config-dir", this.config, "--data-dir", this.data];
  }

  /** env is all the agent sees of the environment. */
  get env() {
    const keep = ["PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "GOCOVERDIR"];
    // A busy machine may take longer to open the store than initialize waits.
    return {HOME: this.dir, BERTH_store__required: "true", ...Object.fromEntries(keep.filter((k) => k in process.env).map((k) => [k, process.env[k]]))};
  }

  read(name) {
    return readFileSync(join(this.project, name), "utf8");
  }

  path(name) {
    return join(this.project, name);
  }
}
