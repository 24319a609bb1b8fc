/** Why a node is suggested, in words. They are derived from its prediction, so both always agree. */

import { percent } from "./dom.js";

const DOUBT = 0.8; // below this probability of the likeliest class a node is in doubt

/** {title, words} of a node. unknown: it looks like none of the classes. classes: the likeliest ones, in order. */
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
