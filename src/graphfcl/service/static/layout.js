/** The order of the panels: on a phone the card follows the question, also for the Tab key. */

import { byId } from "./dom.js";

const PHONE = "(max-width: 45.99rem)"; // as in page.css

export function startLayout() {
  const phone = matchMedia(PHONE);
  phone.addEventListener("change", () => arrange(phone.matches));
  arrange(phone.matches);
}

function arrange(narrow) {
  const held = document.activeElement;
  byId(narrow ? "question-panel" : "left").after(byId("middle"));
  held?.focus({ preventScroll: true }); // moved elements lose the focus
}
