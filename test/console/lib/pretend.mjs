// A gateway that is only pretended, inside the page: what the real one does in
// rare moments, or never, is played to the console.

/**
 * pretend runs in the page before its own scripts. window.gateway answers the
 * page's requests: answers holds a result or a function of the params by
 * method, hold the methods that are not answered, sent is what the page sent.
 */
export function pretend() {
  const gateway = {
    sent: [], answers: {}, hold: [], sessions: [], history: {}, socket: null, up: true, status: 426, next: 1,
    meta: {agents: [{alias: "main", title: "Harbour master", description: "Looks after the harbour", model: "play/script"}], defaultAgent: "main"},
    say(message) {
      this.socket?.onmessage?.({data: JSON.stringify({jsonrpc: "2.0", ...message})});
    },
    update(sessionId, ...updates) {
      for (const update of updates) this.say({method: "session/update", params: {sessionId, update}});
    },
    ask(sessionId, toolCall, options) {
      this.say({id: `ask-${this.next++}`, method: "session/request_permission", params: {sessionId, toolCall, options}});
    },
    answer(method, result) {
      const at = this.sent.findLast((m) => m.method === method);
      this.say({id: at.id, ...(result.error ? result : {result})});
    },
    drop(code = 1006, reason = "") {
      const s = this.socket;
      this.socket = null;
      if (!s) return;
      s.readyState = 3;
      s.onclose?.({code, reason});
    },
    reply(m) {
      if (this.hold.includes(m.method)) return;
      const own = this.answers[m.method];
      let result = typeof own === "function" ? own(m.params) : own;
      if (result === undefined) {
        const id = m.params?.sessionId;
        if (m.method === "session/load" || m.method === "_berth/session/observe") this.update(id, ...(this.history[id] ?? []));
        result = {
          initialize: {protocolVersion: 1, agentInfo: {name: "berth", title: "Berth", version: "1.0.0"}, agentCapabilities: {loadSession: true, promptCapabilities: {image: true, embeddedContext: true}}, _meta: {berth: this.meta}},
          "session/list": {sessions: this.sessions},
          "session/new": {sessionId: `new-${this.next++}`, _meta: {berth: {agent: "main", model: "play/script"}}},
          "session/prompt": {stopReason: "end_turn"},
        }[m.method] ?? {_meta: {berth: {agent: "main", model: "play/script"}}};
      }
      this.say({id: m.id, ...(result.error ? result : {result})});
    },
  };
  window.gateway = gateway;
  window.WebSocket = class {
    static OPEN = 1;
    readyState = 0;

    constructor(url, protocols) {
      this.protocols = protocols;
      gateway.socket = this;
      setTimeout(() => {
        if (gateway.socket !== this) return;
        if (!gateway.up) return gateway.drop();
        this.readyState = 1;
        this.onopen?.();
      });
    }

    send(text) {
      const m = JSON.parse(text);
      gateway.sent.push(m);
      if (m.method && m.id !== undefined) setTimeout(() => gateway.reply(m));
    }

    close(code) {
      this.readyState = 3;
      if (gateway.socket === this) gateway.drop(code);
    }
  };
  const get = window.fetch;
  window.fetch = (to, ...rest) => (String(to).endsWith("/acp") ? Promise.resolve(new Response(null, {status: gateway.status})) : get(to, ...rest));
}
