/** Leases of the nodes that this tab is about to show, so that no other tab or person is asked about them meanwhile. */

import { ask, leave } from "./api.js";
import { token } from "./token.js";

const AGAIN = 45_000; // milliseconds until leases are renewed; they end after two minutes
const HOLDER = "graphfcl.holder";

let claimed = [];

/** The name of this tab. A copy of a tab, which has the same storage, gets another one; a page that is loaded again keeps it. */
function holder() {
  const [navigation] = performance.getEntriesByType("navigation");
  const kept = navigation?.type === "reload" ? sessionStorage.getItem(HOLDER) : null;
  const name = kept ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
  sessionStorage.setItem(HOLDER, name);
  return name;
}

const name = holder();

/** Leases these nodes and gives back all others; resolves to the ids of those that someone else is labelling. */
export async function claim(ids) {
  claimed = ids;
  if (!token()) return []; // a reader is asked about nothing
  try {
    return (await ask("/v1/queue/leases", { holder: name, ids }, { quiet: true })).taken;
  } catch {
    return []; // without leases the queue goes on; labels that disagree are refused later
  }
}

addEventListener("pagehide", () => {
  if (claimed.length > 0) leave("/v1/queue/leases", { holder: name, ids: [] });
});
setInterval(() => {
  if (claimed.length > 0 && !document.hidden) claim(claimed);
}, AGAIN);
