/** The versions of the model, the newest first; going back makes a new version, so nothing is lost. */

import { othersChanges, path, readEntries, readFile } from "./api.js";
import { change } from "./changes.js";
import { confirmed } from "./dialogs.js";
import { openEffect } from "./effect.js";
import { asSentence, button, byId, element, fill } from "./dom.js";
import { emit } from "./state.js";
import { say, tellError } from "./status.js";

const FIRST = 8;
const MORE = 50;
let shown = FIRST;

export function startVersions() {
  for (const name of ["labels", "history"]) {
    byId(`export-${name}`).addEventListener("click", () => download(name).catch(tellError));
  }
  byId("versions-more").addEventListener("click", () => {
    shown += MORE;
    loadVersions().catch(tellError);
  });
}

/** Saves a table of the service as a file. */
async function download(name) {
  const link = element("a", { href: URL.createObjectURL(await readFile(`/v1/export/${name}.csv`)), download: `${name}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  say(`The file ${name}.csv is saved by your browser.`);
}

export async function loadVersions() {
  const { versions, next_cursor: next } = await readEntries("/v1/versions", "versions", shown);
  fill(byId("versions"), versions.map((each, place) => row(each, place === 0)));
  byId("versions-more").hidden = next === null;
}

function row(entry, newest) {
  const when = new Date(entry.when);
  return element(
    "li",
    { "aria-current": newest ? "true" : null },
    element(
      "div",
      { class: "version-head" },
      element("strong", {}, `Version ${entry.version}`),
      element("time", { class: "hint", datetime: entry.when }, Number.isNaN(when.getTime()) ? entry.when : when.toLocaleString()),
    ),
    element("p", {}, asSentence(entry.what), entry.by?.length > 0 && element("span", { class: "hint" }, ` By ${entry.by.join(" and ")}.`)),
    element(
      "div",
      { class: "version-foot" },
      button("Changes", () => openEffect(entry.version), { class: "quiet", "aria-label": `Changes of version ${entry.version}` }),
      newest
        ? element("span", { class: "hint" }, "in use")
        : button("Go back", () => goBack(entry), { "aria-label": `Go back to version ${entry.version}` }),
    ),
  );
}

async function goBack(entry) {
  const seen = othersChanges();
  const text = `The model becomes what it was in version ${entry.version} (${entry.what}). What came after stays in the list, so you can return.`;
  if (!(await confirmed(`Go back to version ${entry.version}?`, text, "Go back"))) return;
  const message = (answer, seconds) => `Version ${answer.version} equals version ${entry.version}; it took ${seconds}.`;
  const after = () => emit("version", { forget: true });
  await change("POST", path("versions", entry.version, "rollback"), undefined, message, { after, seen });
}
