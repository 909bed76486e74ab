// The frame of all views, and the keyboard.

import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./vendor/htm-preact.js";
import { heard, useRoute } from "./api.js";
import { Ask } from "./ask.js";
import { Budget } from "./budget.js";
import { Compare } from "./compare.js";
import { Document } from "./document.js";
import { Health } from "./health.js";
import { Judge } from "./judge.js";
import { Lost } from "./lost.js";
import { Problem, To, Warnings } from "./parts.js";
import { Scores } from "./scores.js";
import { carried } from "./settings.js";
import { useAddress, useHeard } from "./state.js";

/** The views in the order of their keys: name, title, the question that it answers. */
const VIEWS = [
  ["ask", "Ask", "What does the collection say to a question, within a budget?", Ask],
  ["scores", "Scores", "Why does a passage stand where it stands?", Scores],
  ["lost", "Where did it go", "Why is a document not in the context, and what would bring it in?", Lost],
  ["budget", "Budget", "What did the tokens buy, what was left out, and would more tokens help?", Budget],
  ["compare", "A | B", "What does another setting change?", Compare],
  ["document", "Document", "What stands at a citation, and around it?", Document],
  ["judge", "Judge", "How good are the results, question by question?", Judge],
  ["health", "Health", "What is in the collection, and is it sound?", Health],
];

function App() {
  const { state, again } = useAddress();
  const [turn, next] = useState(0);
  const known = useRoute("/v1/collections", undefined, { again: turn });
  const main = useRef();
  const retry = () => next((n) => n + 1);
  useHeard(window, "key", retry);
  useHeard(window, "keydown", press);
  const [name, title, about, View] = VIEWS.find(([name]) => name === state.view) ?? [state.view, "No such view", "", Nothing];
  const first = useRef(true);
  useEffect(() => {
    window.document.title = `${state.q && name !== "health" ? `${state.q} – ` : ""}${title} – Cento`;
    if (first.current) first.current = false;
    else if (!main.current.contains(window.document.activeElement)) main.current.focus({ preventScroll: true });
  }, [name, state.q]);
  const collections = known.answer?.data.collections ?? [];
  const collection = state.c ?? collections[0];
  const moved = useMoved(collection);
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.focus())}>To the content</a>
    <header><nav aria-label="Views">
      <${To} class="name" state=${{ view: "ask", c: state.c }}>Cento</>
      <ul>${VIEWS.map(([view, title], n) => html`<li><${To} state=${{ ...carried(state), view }} aria-current=${view === name ? "page" : undefined}
        aria-keyshortcuts=${`Alt+${n + 1}`} title=${`Alt+${n + 1}`}>${title}</></li>`)}</ul>
    </nav></header>
    <main id="main" tabindex="-1" ref=${main}>
      <h1>${title} <small>${about}</small></h1>
      <${Problem} error=${known.error} again=${retry} />
      ${moved && html`<${Warnings} list=${[moved]} />`}
      ${known.answer && !collections.length && html`<p class="hint" data-test="empty">There is no collection yet. Make one over HTTP, where the server runs with --writable, and look again; or with <code>cento index FOLDER</code>, and start the server anew.
        ${" "}<button type="button" class="small" onClick=${retry}>Look again</button></p>`}
      ${collection && known.answer && html`<${Guarded} key=${`${name} ${collection}`}><${View} state=${state} again=${`${again}.${turn}.`} collection=${collection} collections=${collections} /></>`}
    </main>
    <footer><p>Nobody but this server is asked. <kbd>/</kbd> goes to the question, <kbd>Alt</kbd>+<kbd>1</kbd>…<kbd>8</kbd> to a view.
      Routes: <a href="/openapi.json">openapi.json</a></p></footer>`;
}

const Nothing = () => html`<p class="hint">The address names a view that this version does not have.</p>`;

/** A fault of the page itself takes down one view, and says so. */
function Guarded({ children }) {
  const [error, reset] = useErrorBoundary((error) => console.error(error));
  if (!error) return children;
  return html`<${Problem} error=${{ code: "page", message: "This view cannot show the answer.", hint: String(error) }} again=${reset} />`;
}

/** A sentence once another generation answers than before. */
function useMoved(collection) {
  const seen = useRef({});
  const [moved, tell] = useState();
  const hear = ({ detail }) => {
    const name = detail.collection ?? collection;
    const before = seen.current[name];
    seen.current[name] = detail.is;
    if (before && before !== detail.is) tell({ name, text: `The collection has changed: generation ${detail.is} answers now, ${before} did before. What you see may mix both until you ask again.` });
  };
  useHeard(heard, "generation", hear, [collection]);
  return moved && moved.name === collection ? moved.text : undefined;
}

/** `/` to the question, Alt and a digit to a view; letters alone do nothing. */
function press(event) {
  if (event.ctrlKey || event.metaKey) return;
  const inField = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  const digit = /^Digit([1-8])$/.exec(event.code)?.[1];
  if (event.altKey && digit) {
    window.document.querySelectorAll("header li a")[digit - 1].click();
    event.preventDefault();
  } else if (event.key === "/" && !inField && !event.altKey) {
    (window.document.getElementById("question") ?? window.document.querySelector("main input"))?.focus();
    event.preventDefault();
  }
}

const place = window.document.getElementById("page");
place.replaceChildren();
render(html`<${App} />`, place);
