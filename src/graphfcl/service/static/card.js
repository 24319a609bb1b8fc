/** The card of one node: its label, likeliest classes, unknown score, explanation and features. */

import { bar, byId, counted, element, fill, nodeButton, percent } from "./dom.js";
import { cardAddress, readReady, reasonsAddress } from "./ready.js";
import { emit, state } from "./state.js";
import { statementText } from "./statements.js";
import { tellError } from "./status.js";

const FEATURES = 20;
const WORDS = 6;
const LEAST = 0.01; // smallest weight of a word that is shown
const NEIGHBOURS = 5;
const UNUSUAL = 0.8; // a node above this is unusual even if it is not called unknown

let latest = 0;

/** Shows a node; resolves when its card is loaded. The explanation follows when it is computed. */
export async function showCard(id, show) {
  latest += 1;
  const mine = latest;
  byId("card").setAttribute("aria-busy", "true");
  try {
    const card = await readReady(cardAddress(id));
    if (mine !== latest) return false;
    const another = state.card?.id !== card.id;
    state.card = card;
    state.wanted = card.id;
    delete byId("card").dataset.empty;
    draw(card, another);
    emit("card", { another });
  } catch (error) {
    if (mine === latest) {
      state.wanted = state.card?.id ?? null;
      tellError(error);
    }
    return false;
  } finally {
    if (mine === latest) byId("card").removeAttribute("aria-busy");
  }
  await showReasons(id, mine, show);
  return true;
}

function draw(card, another) {
  byId("card-name").textContent = card.id;
  const degree = counted(card.degree, "link");
  fill(
    byId("card-label"),
    card.label === null ? "No label" : element("span", {}, "Labelled ", element("strong", {}, card.label)),
    ` · ${degree}`,
  );
  fill(byId("card-statements"), (card.statements ?? []).map((each) => element("li", {}, `By ${statementText(each)}`)));
  fill(byId("card-text"), card.text && element("p", { class: "text" }, card.text));
  fill(byId("card-classes"), card.classes.map((each) => bar(each.name, each.probability)));
  drawUnknown(card);
  const features = card.features.slice(0, FEATURES);
  fill(
    byId("card-features"),
    features.map((each) =>
      element("li", { class: "chip" }, each.name, each.value !== 1 && element("span", { class: "hint" }, ` ${short(each.value)}`)),
    ),
    features.length === 0 && element("li", { class: "hint" }, "It has no features."),
  );
  if (another) fill(byId("card-why"), element("p", { class: "hint" }, "The reasons are being computed …"));
}

function drawUnknown(card) {
  fill(
    byId("card-unknown"),
    element("span", { class: "bar-track", "aria-hidden": "true" }, element("span", { class: "bar-fill", share: card.unknown_score })),
    element("p", {}, unknownScoreSentence(card)),
  );
  byId("card-unknown").dataset.unknown = String(card.unknown);
}

function unknownScoreSentence({ unknown, unknown_score }) {
  const score = `unknown score ${percent(unknown_score)}, the share of nodes of known classes with a lower one`;
  if (unknown) return `It looks like none of the known classes: ${score}.`;
  return unknown_score > UNUSUAL ? `It looks unusual, but may be of a known class: ${score}.` : `It looks known: ${score}.`;
}

function short(value) {
  return Number.isInteger(value) ? String(value) : Number(value).toPrecision(3);
}

async function showReasons(id, mine, show) {
  let content;
  try {
    content = reasons(await readReady(reasonsAddress(id)), show);
  } catch (error) {
    content = [element("p", { class: "hint" }, error.message)];
  }
  if (mine === latest) fill(byId("card-why"), content);
}

function reasons(explanation, show) {
  const words = explanation.words.filter((each) => Math.abs(each.weight) >= LEAST).slice(0, WORDS);
  const neighbours = explanation.neighbours.slice(0, NEIGHBOURS);
  return [
    explanation.summary.map((each) => element("p", {}, each)),
    words.length > 0 && element("p", { class: "hint" }, "Words that decided; a minus speaks against the likeliest class:"),
    words.length > 0 &&
      element(
        "ul",
        { class: "chips" },
        words.map((each) => element("li", { class: "chip", "data-against": each.weight < 0 }, `${each.name} ${signed(each.weight)}`)),
      ),
    neighbours.length > 0 && element("p", { class: "hint" }, "Neighbours that influence it most:"),
    neighbours.length > 0 &&
      element(
        "ul",
        { class: "chips" },
        neighbours.map((each) => element("li", {}, nodeButton(each.id, show), element("span", { class: "hint" }, ` ${percent(each.share)}`))),
      ),
  ];
}

function signed(value) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
}
