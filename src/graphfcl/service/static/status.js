/** The status line: what happened last. Errors stay until the next message. */

import { asSentence, byId, element, fill } from "./dom.js";
import { ServiceError } from "./api.js";

function show(text, kind) {
  const line = byId("status-message");
  line.dataset.kind = kind;
  line.textContent = text;
}

export function say(text) {
  show(text, "fine");
}

export function caution(text) {
  show(asSentence(text), "caution");
}

/** Shows an error. Errors that do not come from the service are bugs of the page and go to the console. */
export function tellError(error) {
  if (!(error instanceof ServiceError)) console.error(error);
  show(error instanceof ServiceError ? asSentence(error.message) : "The page has a fault. Load it again.", "error");
}

/** What the page says about the model: version, method, size. */
export function showModel(model) {
  fill(
    byId("model-line"),
    element("strong", {}, `Version ${model.version}`),
    ` · ${model.method} · ${model.nodes.toLocaleString("en")} nodes · `,
    `${model.edges.toLocaleString("en")} edges · ${countOf(model.classes)} classes`,
  );
}

function countOf(classes) {
  return Array.isArray(classes) ? classes.length : classes;
}

export function showWork(count) {
  const line = byId("status-work");
  line.textContent = count === 0 ? "" : count === 1 ? "1 label is being learned …" : `${count} labels are being learned …`;
}
