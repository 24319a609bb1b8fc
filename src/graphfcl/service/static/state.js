/** What the page knows, in one place, and who wants to hear of it. */

export const state = {
  model: null, // answer of /v1/model
  classes: [], // entries of /v1/classes
  card: null, // answer of /v1/nodes/{id} for the node that is shown
  wanted: null, // id of the node that is shown as soon as its card has come
};

/** The card that the user sees, or null while that of another node is on its way: a key must not label the wrong node. */
export function loadedCard() {
  return state.card !== null && state.card.id === state.wanted ? state.card : null;
}

const hearers = new Map();

/** Events: "card" (another node is shown, or it was asked again), "classes", "version". */
export function on(event, hear) {
  hearers.set(event, [...(hearers.get(event) ?? []), hear]);
}

export function emit(event, value) {
  for (const hear of hearers.get(event) ?? []) hear(value);
}

export function classNames() {
  return state.classes.map((each) => each.name);
}
