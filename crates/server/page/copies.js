// What a view asked, as a command of the shell, of Cento and of Python: what is copied gives what is shown.

import { html, useState } from "./vendor/htm-preact.js";
import { Copy } from "./parts.js";
import { route } from "./api.js";

/** A word as a POSIX shell reads it back, whatever is in it. */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'\\''`)}'`);

/** A value as TOML writes it. */
function toml(value) {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  return JSON.stringify(value).replaceAll("\x7f", "\\u007f");
}

/** A policy as its file. */
function policyFile(policy) {
  const isTable = (value) => value && typeof value === "object" && !Array.isArray(value);
  const line = ([name, value]) => `${JSON.stringify(name)} = ${toml(value)}`;
  const entries = Object.entries(policy);
  const tables = entries.filter(([, value]) => isTable(value));
  const plain = entries.filter(([, value]) => !isTable(value)).map(line);
  return [...plain, ...tables.map(([name, table]) => [`[${name}]`, ...Object.entries(table).map(line)].join("\n"))].join("\n");
}

/** The flags of a request. */
function flags(body) {
  const { query, policy, explain, ...rest } = body;
  const said = Object.entries(rest).flatMap(([name, value]) =>
    name === "k" ? ["-k", value] : [value].flat().flatMap((one) => [`--${name}`, one]),
  );
  if (policy) said.push("--policy", "policy.toml");
  if (explain) said.push("--explain");
  return said.map(String);
}

function command({ verb, before = [], body = {}, collection, after = [] }) {
  const of = collection ? ["--collection", collection] : [];
  const named = before.some((word) => word.startsWith("-")) ? [[], ["--", ...before]] : [before, []];
  const words = ["cento", verb, ...named[0], ...flags(body), ...of, ...after, ...named[1]].map(quoted).join(" ");
  if (!body.policy) return words;
  return `cat > policy.toml <<'END'\n${policyFile(body.policy)}\nEND\n${words}`;
}

function shells({ path, parameters, body, cli }, collection) {
  const at = location.origin + route(path, { collection, ...parameters });
  const data = body && JSON.stringify(body);
  const key = "# with keys: --header 'Authorization: Bearer KEY'\n";
  const python = body
    ? `from urllib.request import Request, urlopen\nimport json\n\nbody = json.loads(${JSON.stringify(data)})\n` +
      `answer = json.load(urlopen(Request(${JSON.stringify(at)}, json.dumps(body).encode())))\nprint(json.dumps(answer, indent=1))`
    : `from urllib.request import urlopen\nimport json\n\nprint(json.dumps(json.load(urlopen(${JSON.stringify(at)})), indent=1))`;
  const made = { curl: `${key}curl --fail ${quoted(at)}${data ? ` --data ${quoted(data)}` : ""}`, python };
  return cli ? { curl: made.curl, cento: command({ ...cli, collection }), python } : made;
}

/**
 * Commands for what a view asked: `{ path, parameters, body, cli }`, where `cli` is the verb, what stands before and
 * after its flags, and the body they say. `collection` where there are several.
 */
export function Copies({ what, collection }) {
  const [tab, show] = useState("curl");
  const texts = shells(what, collection);
  const now = texts[tab] ? tab : "curl";
  return html`<details class="copies"><summary>The same as a command</summary>
    <div class="tabs" role="group" aria-label="Language">
      ${Object.keys(texts).map((name) => html`<button type="button" class="small" aria-pressed=${name === now} onClick=${() => show(name)}>${name}</button>`)}
      <${Copy} text=${texts[now]} />
    </div>
    <pre class="command" tabindex="0" role="region" aria-label=${`The request for ${now}`}>${texts[now]}</pre>
  </details>`;
}
