/** Reads the queue of the service: nodes without a label, in the order in which to label them. */

import { currentVersion, readPage } from "./api.js";

const LARGEST = 150; // largest page that the service sends
const PAUSE = 300; // milliseconds before the queue is read again because the model changed meanwhile

/**
 * The first `count` nodes that `wanted(id)` accepts, in {nodes, refused, unlabelled, ready}. refused: ids before and
 * between them that were not accepted; all there are if fewer than `count` nodes are found. skips: how many ids
 * `wanted` may refuse, so that they fit into one answer where possible.
 */
export async function readQueue(count, wanted, skips) {
  const size = Math.min(LARGEST, count + skips);
  for (;;) {
    const pages = await readPages(count, wanted, size);
    if (pages !== null) return pages;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

/** Null unless all pages are of the newest version: otherwise labelled nodes could be among them. */
async function readPages(count, wanted, size) {
  const [nodes, refused] = [[], []];
  for (let cursor = null; ; ) {
    const page = await readPage(`/v1/queue?limit=${size}`, cursor);
    if (page === null || page.version !== currentVersion()) return null;
    cursor = page.next_cursor;
    for (const each of page.nodes) {
      if (wanted(each.id)) nodes.push(each);
      else refused.push(each.id);
    }
    if (nodes.length >= count || cursor === null) {
      return { nodes: nodes.slice(0, count), refused, unlabelled: page.unlabelled, ready: page.status === "ready" };
    }
  }
}
