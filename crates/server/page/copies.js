// What a view asked, as a command of the shell, of Cento and of Python: what is copied gives what is shown.

import { html, useState } from "./vendor/htm-preact.js";
import { Copy } from "./parts.js";
import { key, route } from "./api.js";

/** A word as a POSIX shell reads it back. */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'\\''`)}'`);

/** A value as a line of TOML. */
function toml(value) {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (isTable(value)) return `{ ${Object.entries(value).map(pair).join(", ")} }`;
  return JSON.stringify(value).replaceAll("\x7f", "\\u007f");
}

const isTable = (value) => value && typeof value === "object" && !Array.isArray(value);
const pair = ([name, value]) => `${toml(name)} = ${toml(value)}`;

/** A policy as its file: no line of it is a bare word, so none ends a heredoc. */
function policyFile(policy) {
  const entries = Object.entries(policy);
  const tables = entries.filter(([, value]) => isTable(value));
  const plain = entries.filter(([, value]) => !isTable(value)).map(pair);
  return [...plain, ...tables.map(([name, table]) => [`[${toml(name)}]`, ...Object.entries(table).map(pair)].join("\n"))].join("\n");
}

/** The flags of a request; a value that begins like a flag is bound to its own. */
function flags(body) {
  const { query, policy, explain, ...rest } = body;
  const said = Object.entries(rest).flatMap(([name, value]) =>
    [value].flat().map(String).flatMap((one) => (name === "k" ? ["-k", one] : one.startsWith("-") ? [`--${name}=${one}`] : [`--${name}`, one])),
  );
  if (policy) said.push("--policy", "policy.toml");
  if (explain) said.push("--explain");
  return said;
}

function command({ verb, before, body = {}, collection, after }) {
  const of = collection ? ["--collection", collection] : [];
  const named = before.some((word) => word.startsWith("-")) ? [[], ["--", ...before]] : [before, []];
  const at = collection ? "# where the collections lie\n" : "";
  const words = at + ["cento", verb, ...named[0], ...flags(body), ...of, ...after, ...named[1]].map(quoted).join(" ");
  if (!body.policy) return words;
  return `cat > policy.toml <<'END'\n${policyFile(body.policy)}\nEND\n${words}`;
}

function shells({ path, parameters, body, cli }, collection) {
  const at = location.origin + route(path, { collection: body && collection, ...parameters });
  const data = body && JSON.stringify(body);
  // A key is never copied: commands take it from the environment.
  const curl = ["curl --fail", key.get() && `--header "Authorization: Bearer $KEY"`, quoted(at), data && `--data ${quoted(data)}`];
  const rest = [data && `${JSON.stringify(data)}.encode()`, key.get() && `headers={"Authorization": "Bearer " + os.environ["KEY"]}`];
  const python = `import json${key.get() ? ", os" : ""}\nfrom urllib.request import Request, urlopen\n\n` +
    `request = Request(${[JSON.stringify(at), ...rest].filter(Boolean).join(", ")})\nprint(json.dumps(json.load(urlopen(request)), indent=1))`;
  const made = { curl: curl.filter(Boolean).join(" "), python };
  return cli ? { curl: made.curl, cento: command({ before: [body?.query], body, after: ["--json"], ...cli, collection }), python } : made;
}

/**
 * Commands for what a view asked: `{ path, parameters, body, cli }`, where `cli` is the verb, what stands before and
 * after its flags, and the body they say. `of` the collection, and all there are.
 */
export function Copies({ what, of: [collection, all] = [] }) {
  const [tab, show] = useState("curl");
  const texts = shells(what, all?.length > 1 ? collection : undefined);
  const now = texts[tab] ? tab : "curl";
  return html`<details class="copies"><summary>The same as a command</summary>
    <div class="tabs" role="group" aria-label="Language">
      ${Object.keys(texts).map((name) => html`<button type="button" class="small" aria-pressed=${name === now} onClick=${() => show(name)}>${name}</button>`)}
      <${Copy} text=${texts[now]} />
    </div>
    <pre class="command" tabindex="0" role="region" aria-label=${`The request for ${now}`}>${texts[now]}</pre>
  </details>`;
}
