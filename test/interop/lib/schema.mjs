// The published JSON schema of the protocol, as the official SDK ships it,
// turned into a judge of single values. It is read at test time and never
// copied into this repository.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import Ajv from "ajv/dist/2020.js";

const require = createRequire(import.meta.url);

/** Judge says whether params and results of a method fit the schema. */
export class Judge {
  #ajv;
  #schema;
  #compiled = new Map();
  #byMethod = new Map(); // method -> {params, result} -> name of a definition

  constructor(file = "@agentclientprotocol/sdk/schema/v1/schema.json") {
    this.#schema = JSON.parse(readFileSync(require.resolve(file), "utf8"));
    this.#ajv = new Ajv({strict: false, allErrors: true, validateFormats: false, logger: false});
    this.#ajv.addSchema(this.#schema, "acp");
    for (const [name, def] of Object.entries(this.#schema.$defs)) {
      const method = def["x-method"];
      if (!method) continue;
      const entry = this.#byMethod.get(method) ?? {};
      entry[name.endsWith("Response") ? "result" : "params"] = name;
      this.#byMethod.set(method, entry);
    }
  }

  /** knows reports whether the schema defines a method. */
  knows(method) {
    return this.#byMethod.has(method);
  }

  /** faults returns what is wrong with the params or the result of a method. */
  faults(method, part, value) {
    const name = this.#byMethod.get(method)?.[part];
    if (!name) return [];
    const pointer = `#/$defs/${name}`;
    const validate = this.#validator(pointer);
    const where = `${method} ${part}`;
    if (!validate(value)) {
      return validate.errors.slice(0, 5).map((e) => `${where}${e.instancePath}: ${e.message}`);
    }
    return this.#custom(pointer, value, "").map((path) => `${where}${path}: not in the schema; custom fields belong in _meta`);
  }

  #validator(pointer) {
    let v = this.#compiled.get(pointer);
    if (!v) {
      v = this.#ajv.compile({$ref: `acp${pointer}`});
      this.#compiled.set(pointer, v);
    }
    return v;
  }

  #at(pointer) {
    return pointer
      .slice(2)
      .split("/")
      .reduce((node, key) => node[key.replaceAll("~1", "/").replaceAll("~0", "~")], this.#schema);
  }

  // The schema allows additional properties everywhere, the protocol does not:
  // #custom returns the paths of fields that no definition names.
  #custom(pointer, value, path) {
    if (Array.isArray(value)) {
      const items = this.#shapes(pointer, value).filter((p) => this.#at(p).items).map((p) => `${p}/items`);
      return value.flatMap((v, i) => this.#anyOf(items, v, `${path}/${i}`));
    }
    if (value === null || typeof value !== "object") return [];
    const shapes = this.#shapes(pointer, value);
    const known = new Map();
    for (const p of shapes) {
      const node = this.#at(p);
      for (const key of Object.keys(node.properties ?? {})) {
        known.set(key, [...(known.get(key) ?? []), `${p}/properties/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`]);
      }
    }
    // A definition without properties of its own takes whatever comes: _meta,
    // rawInput and alike.
    if (known.size === 0) return [];
    return Object.entries(value).flatMap(([key, v]) => {
      if (key === "_meta") return [];
      return known.has(key) ? this.#anyOf(known.get(key), v, `${path}/${key}`) : [`${path}/${key}`];
    });
  }

  #anyOf(pointers, value, path) {
    const all = pointers.map((p) => this.#custom(p, value, path));
    return all.length === 0 ? [] : all.reduce((a, b) => (a.length <= b.length ? a : b));
  }

  // #shapes returns every definition that speaks about a value: the node
  // itself, what it refers to, and the members of its unions that fit.
  #shapes(pointer, value) {
    const node = this.#at(pointer);
    if (node === null || typeof node !== "object") return [];
    const out = [pointer];
    if (node.$ref) out.push(...this.#shapes(node.$ref, value));
    (node.allOf ?? []).forEach((_, i) => out.push(...this.#shapes(`${pointer}/allOf/${i}`, value)));
    for (const union of ["anyOf", "oneOf"]) {
      (node[union] ?? []).forEach((_, i) => {
        const member = `${pointer}/${union}/${i}`;
        if (this.#validator(member)(value)) out.push(...this.#shapes(member, value));
      });
    }
    return out;
  }
}
