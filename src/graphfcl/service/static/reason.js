/** Why a node is asked about, in words. They are made of what the model says of the node, so that both always agree. */

import { percent } from "./dom.js";

const DOUBT = 0.8; // a first class that is less likely than this is in doubt

/** {title, words} of a node. unknown: it looks like none of the classes. classes: the likeliest, first first. */
export function reasonOf({ unknown, classes }) {
  const [first, second] = classes;
  if (unknown) return { title: "Looks unknown", words: "It may be of a class that has no name yet." };
  if (second !== undefined && first.probability < DOUBT) {
    return { title: "In doubt", words: `It could be ${chance(first)} or ${chance(second)}.` };
  }
  return { title: "Looks known", words: `It is probably ${chance(first)}. Confirm or correct this.` };
}

function chance({ name, probability }) {
  return `${name} (${percent(probability).replace(" ", "\u00a0")})`;
}
