/** The state of the page, and listeners for its changes. */

export const state = {
  model: null, // answer of /v1/model
  classes: [], // entries of /v1/classes
  card: null, // answer of /v1/nodes/{id} for the node that is shown
  wanted: null, // id of the node that is shown as soon as its card is loaded
};

/** The card of the current node, or null while it is loading: a key must not label the wrong node. */
export function loadedCard() {
  return state.card !== null && state.card.id === state.wanted ? state.card : null;
}

const listeners = new Map();

/** Events: "card" (another node is shown, or its card was reloaded), "classes", "version", "decision" (a node was given a class on this page). */
export function on(event, listener) {
  listeners.set(event, [...(listeners.get(event) ?? []), listener]);
}

export function emit(event, value) {
  for (const listener of listeners.get(event) ?? []) listener(value);
}

export function classNames() {
  return state.classes.map((each) => each.name);
}
