/** Leases of the nodes that this tab is about to show, so that no other tab or person gets them. */

import { ask, leave } from "./api.js";
import { token } from "./token.js";

const AGAIN = 45_000; // milliseconds until leases are renewed; they end after two minutes
const HOLDER = "graphfcl.holder";

let claimed = [];
let underWay = new AbortController(); // stops claims when the page is left: a later one would lease nodes for nobody

/** The id of this tab, which survives a reload. A duplicated tab, which copies the storage, gets another one. */
function holder() {
  const [navigation] = performance.getEntriesByType("navigation");
  const kept = navigation?.type === "reload" ? sessionStorage.getItem(HOLDER) : null;
  const name = kept ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
  sessionStorage.setItem(HOLDER, name);
  return name;
}

const name = holder();

/** Leases these nodes and releases all others; resolves to the ids of those that someone else has leased. */
export async function claim(ids) {
  claimed = ids;
  if (!token()) return []; // without a token, labels are refused
  try {
    return (await ask("/v1/queue/leases", { holder: name, ids }, { quiet: true, signal: underWay.signal })).taken;
  } catch {
    return []; // the queue works without leases; conflicting labels are refused later
  }
}

addEventListener("pagehide", () => {
  underWay.abort();
  if (claimed.length > 0 && token()) leave("/v1/queue/leases", { holder: name, ids: [] });
});
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return;
  underWay = new AbortController();
  if (claimed.length > 0) claim(claimed);
});
setInterval(() => {
  if (claimed.length > 0 && !document.hidden) claim(claimed);
}, AGAIN);
