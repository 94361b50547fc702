// A running `berth daemon` of a home, and the official clients' transports to
// it.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {existsSync, readFileSync} from "node:fs";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {createHttpStream} from "@agentclientprotocol/sdk/experimental/http-client";
import {createWebSocketStream} from "@agentclientprotocol/sdk/experimental/ws-client";
import {binary, patience} from "./home.mjs";

export class Gateway {
  stderr = "";

  /** of returns the running daemon of a home, and starts one if there is none. */
  static async of(home) {
    if (!home.gateway) {
      home.gateway = new Gateway(home);
      home.closing(() => home.gateway?.stop());
      await home.gateway.#ready();
    }
    return home.gateway;
  }

  constructor(home) {
    this.home = home;
    const dirs = ["--config-dir", home.config, "--data-dir", home.data];
    this.child = spawn(binary(), ["daemon", "--listen", "127.0.0.1:0", ...dirs], {stdio: ["ignore", "ignore", "pipe"], cwd: home.project, env: home.env});
    this.child.stderr.setEncoding("utf8").on("data", (s) => (this.stderr += s));
    this.exit = new Promise((done) => this.child.on("exit", (code, signal) => done({code, signal})));
  }

  async #ready() {
    let ended;
    this.exit.then((how) => (ended = how));
    const file = join(this.home.data, "daemon.json");
    for (const limit = performance.now() + patience; performance.now() < limit; ) {
      assert.ok(!ended, `the daemon ended: ${JSON.stringify(ended)}\n${this.stderr}`);
      if (existsSync(file)) {
        const info = JSON.parse(readFileSync(file, "utf8"));
        if (info.pid === this.child.pid) {
          this.address = info.address;
          this.token = readFileSync(join(this.home.data, "bridge-token"), "utf8").trim();
          return;
        }
      }
      await sleep(20);
    }
    assert.fail(`the daemon does not start\n${this.stderr}`);
  }

  get url() {
    return `http://${this.address}/acp`;
  }

  /** stream opens a connection with the transport of that name. */
  stream(transport, query = "") {
    if (transport === "http") return createHttpStream(this.url + query, {headers: {Authorization: `Bearer ${this.token}`}});
    assert.equal(transport, "ws");
    return createWebSocketStream(this.url.replace("http", "ws") + query, {protocols: ["acp.v1", `bearer.${this.token}`]});
  }

  /** kill ends the daemon as a crash would. */
  async kill() {
    this.home.gateway = undefined;
    this.child.kill("SIGKILL");
    await this.exit;
  }

  /** stop ends the daemon and judges how it ended. */
  async stop() {
    this.home.gateway = undefined;
    const hung = setTimeout(() => this.child.kill("SIGKILL"), patience);
    this.child.kill("SIGTERM");
    assert.deepEqual(await this.exit, {code: 0, signal: null}, `the daemon's end\n${this.stderr}`);
    clearTimeout(hung);
    assert.ok(!this.stderr.includes(this.token), "the token is in the log");
  }
}
