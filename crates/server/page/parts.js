// Parts that all views are made of. Texts of documents go into them as text: nothing here makes markup of a string.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";
import { key } from "./api.js";
import { address } from "./state.js";

/** Milliseconds that a slider rests before it is believed: browsers bound the changes of an address. */
const REST_MS = 60;

/** A text whose letters run either way, apart from what is around it. */
export const Text = ({ children }) => html`<bdi dir="auto">${children}</bdi>`;

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

/** The state that shows a document: a span of bytes, and its chunks for their neighbours. */
export function documentState({ c, q }, { document, span, id, chunks = id ? [id] : [] }) {
  const numbers = chunks.map((id) => Number(id.slice(id.lastIndexOf("#") + 1))).filter(Number.isInteger);
  const near = numbers.length ? `${Math.min(...numbers)}-${Math.max(...numbers)}` : undefined;
  return { view: "document", c, q, doc: document, at: span && `${span[0]}-${span[1]}`, chunks: near };
}

/** What is the case while nothing is there yet. */
export const Busy = ({ on, children }) =>
  html`<p class="busy" role="status" aria-live="polite">${on ? (children ?? "Asking …") : ""}</p>`;

/** Ways out that an answer does not name. */
const DAMAGED = "A file of the collection is damaged. On the server, `cento doctor` says which, and `cento repair` keeps what can be read.";
const WAYS = {
  corrupt: DAMAGED, unreadable: DAMAGED, not_found: "The folder of the collection is not where it was.",
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

/** Warnings in their own words. */
export const Warnings = ({ list }) =>
  list?.length ? html`<ul class="warnings" aria-label="Warnings">${list.map((text) => html`<li><${Text}>${text}</></li>`)}</ul>` : null;

/** Where the time went, by stage and as a whole. */
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

/** The most pixels of a list: browsers cut off what is higher than some 30 million. */
const TALL = 8e6;

/**
 * A long list of which only the rows in sight exist, each `row` pixels high; `from` is the first that is seen. One that
 * would be too high is scrolled in larger steps.
 */
export function Long({ items, row, label, children, most = 480, from = 0 }) {
  const box = useRef();
  const [top, scroll] = useState(0);
  const [room, resize] = useState(most);
  useLayoutEffect(() => {
    resize(box.current.clientHeight || most);
    box.current.scrollTop = (from * row) / pace;
    scroll(box.current.scrollTop);
  }, [items, from]);
  const tall = Math.min(TALL, items.length * row);
  const pace = tall > room ? (items.length * row - room) / (tall - room) : 1;
  const first = Math.max(0, Math.floor((top * pace) / row) - 6);
  const shown = items.slice(first, first + Math.ceil(room / row) + 12);
  const at = (n) => Math.round(n * row - top * (pace - 1));
  return html`<div class="long" ref=${box} tabindex="0" role="list" aria-label=${`${label}, ${number(items.length)}`}
    style=${{ height: `${Math.min(most, items.length * row)}px` }} onScroll=${(event) => scroll(event.target.scrollTop)}>
    <div class="all" role="presentation" style=${{ height: `${tall}px` }}>
      ${shown.map((item, n) => html`<div class="row" role="listitem" key=${first + n} aria-posinset=${first + n + 1}
        aria-setsize=${items.length} style=${{ height: `${row}px`, top: `${at(first + n)}px` }}>${children(item, first + n)}</div>`)}
    </div>
  </div>`;
}

/** A table that scrolls by itself; `heads` have commas between. */
export const Table = ({ label, caption, heads, rows, test }) => html`<div class="wide" tabindex="0" role="group" aria-label=${label}><table data-test=${test}>${caption && html`<caption>${caption}</caption>`}
  <thead><tr>${heads.split(", ").map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
  <tbody>${rows.map(([first, ...rest]) => html`<tr><th scope="row">${first}</th>${rest.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div>`;

/** That an answer is awaited, or why there is none. */
export const Asked = ({ of: { busy, error, again }, children }) => html`<div><${Busy} on=${busy}>${children}</><${Problem} error=${error} again=${again} /></div>`;

/** A share as a bar. */
export const Meter = ({ of, most, unit }) => html`<div class="meter" role="img" aria-label=${`${unit(of)} of ${unit(most)}`}><div style=${{ width: `${Math.min(100, (100 * of) / Math.max(1, most))}%` }}></div></div>`;

/** A part of a view under its heading, with a `note` beside it. */
export const Part = ({ id, head = "h2", title, note, children }) =>
  html`<section aria-labelledby=${`${id}-title`}><${head} id=${`${id}-title`}>${title}${note && html` <small>${note}</small>`}</>${children}</section>`;

/** Names and values. */
export const Figures = ({ of }) => html`<dl class="figures">${of.map(([name, value]) => html`<div><dt><${Text}>${name}</></dt><dd><${Text}>${value}</></dd></div>`)}</dl>`;

/** A choice of words. */
export function Choice({ label, name, value, options, onChange }) {
  return html`<label>${label}
    <select name=${name} value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${options.map((option) => html`<option value=${option.value ?? option} selected=${(option.value ?? option) === value}>${option.label ?? option}</option>`)}
    </select></label>`;
}

/** A slider that says its value; it is told once it rests. */
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

/** A button that copies, and says so. */
export function Copy({ text, label = "Copy" }) {
  const [told, tell] = useState("");
  const click = async () => {
    try {
      await navigator.clipboard.writeText(text);
      tell("Copied");
    } catch {
      tell("Select it and copy: the browser does not let pages here");
    }
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
