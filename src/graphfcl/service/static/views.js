/** The views of the middle column (node, map, class, review): tabs, of which one is open. */

import { byId } from "./dom.js";

const opened = new Map(); // what to do when a view opens

/** `draw()` is called whenever a view opens. */
export function onView(name, draw) {
  opened.set(name, draw);
}

export function currentView() {
  return tabs().find((tab) => tab.getAttribute("aria-selected") === "true").dataset.view;
}

export function openView(name) {
  for (const tab of tabs()) {
    const chosen = tab.dataset.view === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    byId(`view-${tab.dataset.view}`).hidden = !chosen;
  }
  opened.get(name)?.();
}

export function startViews() {
  const bar = byId("views");
  bar.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) openView(tab.dataset.view);
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const all = tabs();
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    openView(next.dataset.view);
    next.focus();
  });
}

function tabs() {
  return [...byId("views").querySelectorAll("[role=tab]")];
}
