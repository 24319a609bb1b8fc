/** Prefetches what the page will show next. */

import { currentVersion, path, read } from "./api.js";

const KEPT = 9; // answers: three nodes with three each

const ready = new Map(); // address → {version, answer}; answer is a promise

/** Prefetches the card, the explanation and the neighbourhood of a node. */
export function prepare(id) {
  for (const address of [cardAddress(id), reasonsAddress(id), neighboursAddress(id)]) {
    if (ready.get(address)?.version === currentVersion()) continue;
    const answer = read(address);
    answer.catch(() => ready.delete(address));
    ready.delete(address);
    ready.set(address, { version: currentVersion(), answer });
  }
  while (ready.size > KEPT) ready.delete(ready.keys().next().value);
}

/** An answer of the version that the page shows, at once if it was prefetched. */
export function readReady(address) {
  const kept = ready.get(address);
  ready.delete(address);
  return kept?.version === currentVersion() ? kept.answer : read(address);
}

export function cardAddress(id) {
  return path("nodes", id);
}

export function reasonsAddress(id) {
  return path("nodes", id, "explanation");
}

export function neighboursAddress(id) {
  return `${path("nodes", id, "neighbours")}?limit=150`;
}
