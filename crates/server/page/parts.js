// Parts that all views are made of. Texts of documents go into them as text: nothing here makes markup of a string.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";
import { key } from "./api.js";
import { address } from "./state.js";

/** Milliseconds that a slider rests before it is believed: browsers allow an address so many changes a second. */
const REST_MS = 60;

/** Sides of a text whose letters run either way stay apart from what is around them. */
export const Text = ({ children, class: name }) => html`<bdi class=${name} dir="auto">${children}</bdi>`;

const whole = new Intl.NumberFormat("en");

/** A number as people read it: four decimals, or whole. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return whole.format(value);
  return Math.abs(value) >= 0.001 ? value.toFixed(value >= 1000 ? 0 : 4) : value.toPrecision(3);
}

/** How far a choice may be below the best. */
export const below = (gap) => (gap > 0 && gap < 1e-4 ? "less than 0.01 %" : `${(100 * gap).toFixed(2)} %`);

/** Bytes with a unit. */
export function bytes(n) {
  const unit = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  for (; n >= 1000 && at < unit.length - 1; at++) n /= 1000;
  return `${at ? n.toFixed(1) : n} ${unit[at]}`;
}

export const milliseconds = (ms) => `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;

/** A link to a state of the page. */
export const To = ({ state, children, ...rest }) => html`<a href=${address(state)} ...${rest}>${children}</a>`;

/** Which document a link to `state` of view `document` shows: a span of bytes, and its chunks for their neighbours. */
export function documentState({ c, q }, { document, span, chunks }) {
  const numbers = (chunks ?? []).map((id) => Number(id.slice(id.lastIndexOf("#") + 1))).filter(Number.isInteger);
  const near = numbers.length ? `${Math.min(...numbers)}-${Math.max(...numbers)}` : undefined;
  return { view: "document", c, q, doc: document, at: span && `${span[0]}-${span[1]}`, chunks: near };
}

/** What is the case while nothing is there yet. */
export const Busy = ({ on, children }) =>
  html`<p class="busy" role="status" aria-live="polite">${on ? (children ?? "Asking …") : ""}</p>`;

/** Ways out that an answer does not name. */
const WAYS = {
  corrupt: "A file of the collection is damaged. On the server, `cento doctor` says which, and `cento repair` keeps what can be read.",
  unreadable: "A file of the collection, or the answer itself, cannot be read. The server's log says more.",
  unknown_collection: "It may have been removed or renamed while this page was open.",
};

/** An error in words, with the way out. */
export function Problem({ error, again }) {
  const box = useRef();
  useEffect(() => box.current?.focus(), [error]);
  if (!error) return null;
  if (error.status === 401) return html`<${AskKey} error=${error} again=${again} />`;
  const of = error.parameter && !error.message.includes(error.parameter) ? `${error.parameter}: ` : "";
  return html`<div class="problem" role="alert" tabindex="-1" ref=${box} data-code=${error.code}>
    <p><strong><${Text}>${of + error.message}</></strong></p>
    ${[WAYS[error.code], error.hint].filter(Boolean).map((way) => html`<p><${Text}>${way}</></p>`)}
    ${again && html`<button type="button" onClick=${again}>Ask again</button>`}
  </div>`;
}

function AskKey({ error, again }) {
  const [typed, type] = useState("");
  const submit = (event) => {
    event.preventDefault();
    key.set(typed.trim());
    again?.();
    dispatchEvent(new Event("key"));
  };
  return html`<form class="problem" onSubmit=${submit} data-code="key">
    <p role="alert"><strong>${key.get() ? "This key is not known to the server." : "This server asks for a key."}</strong></p>
    <p>${error.message}. It is kept in this tab alone, and goes when the tab is closed.</p>
    <label>Key <input type="password" name="key" autocomplete="off" required value=${typed} onInput=${(e) => type(e.target.value)} /></label>
    <button>Use this key</button>
  </form>`;
}

/** Warnings, each in its own words. */
export const Warnings = ({ list }) =>
  list?.length ? html`<ul class="warnings" aria-label="Warnings">${list.map((text) => html`<li><${Text}>${text}</></li>`)}</ul>` : null;

/** Where the time went: the stages that the server measured, and the whole as the browser saw it. */
export function Times({ answer }) {
  if (!answer) return null;
  const { stages, ms } = answer;
  const total = Math.max(ms, stages.reduce((sum, { ms }) => sum + ms, 0)) || 1;
  return html`<div class="times">
    <span class="label">Time ${milliseconds(ms)}</span>
    <ul class="bar thin" aria-label="Time by stage">
      ${stages.map(({ stage, ms }, n) => html`<li class=${`part s${n % 6}`} style=${{ flexGrow: ms / total }} title=${`${stage}: ${milliseconds(ms)}`}>
        <span class="hidden">${stage} ${milliseconds(ms)}</span></li>`)}
    </ul>
    <span class="legend">${stages.filter(({ ms }) => ms >= 0.05).map(({ stage, ms }) => html`<span>${stage} ${milliseconds(ms)}</span>`)}</span>
  </div>`;
}

/** A long list of which only the rows in sight exist, each `row` pixels high; `from` is the first that is seen. */
export function Long({ items, row, label, children, most = 480, from = 0 }) {
  const box = useRef();
  const [top, scroll] = useState(0);
  const [room, resize] = useState(most);
  useLayoutEffect(() => {
    resize(box.current.clientHeight || most);
    box.current.scrollTop = from * row;
    scroll(box.current.scrollTop);
  }, [items, from]);
  const first = Math.max(0, Math.floor(top / row) - 6);
  const shown = items.slice(first, first + Math.ceil(room / row) + 12);
  return html`<div class="long" ref=${box} tabindex="0" role="list" aria-label=${`${label}, ${number(items.length)}`}
    style=${{ height: `${Math.min(most, items.length * row)}px` }} onScroll=${(event) => scroll(event.target.scrollTop)}>
    <div class="all" role="presentation" style=${{ height: `${items.length * row}px` }}>
      ${shown.map((item, n) => html`<div class="row" role="listitem" key=${first + n} aria-posinset=${first + n + 1}
        aria-setsize=${items.length} style=${{ height: `${row}px`, top: `${(first + n) * row}px` }}>${children(item, first + n)}</div>`)}
    </div>
  </div>`;
}

/** A choice of few words. */
export function Choice({ label, name, value, options, onChange }) {
  return html`<label>${label}
    <select name=${name} value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${options.map((option) => html`<option value=${option.value ?? option} selected=${(option.value ?? option) === value}>${option.label ?? option}</option>`)}
    </select></label>`;
}

/** A slider that says its value; what it is moved to is told once it rests for a moment. */
export function Slider({ label, name, min, max, step, value, onInput }) {
  const [held, hold] = useState();
  const timer = useRef();
  useEffect(() => () => clearTimeout(timer.current), []);
  const move = ({ target }) => {
    const to = Number(target.value);
    hold(to);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => (hold(undefined), onInput(to)), REST_MS);
  };
  return html`<label class="slider"><span>${label} <output>${whole.format(held ?? value)}</output></span>
    <input type="range" name=${name} min=${min} max=${max} step=${step} value=${held ?? value} onInput=${move} /></label>`;
}

/** Puts a text into the clipboard; false if the browser does not let it. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** A button that copies, and says so. */
export function Copy({ text, label = "Copy" }) {
  const [told, tell] = useState("");
  const click = async () => {
    tell((await copy(typeof text === "function" ? text() : text)) ? "Copied" : "Select it and copy: the browser does not let pages here");
    setTimeout(() => tell(""), 2500);
  };
  return html`<button type="button" class="small" onClick=${click}>${label}</button><span class="told" role="status">${told}</span>`;
}

/** Offers a text as a file. */
export function save(name, text, kind = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
