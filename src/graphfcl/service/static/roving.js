/** Lists of buttons that the Tab key visits once: the arrow keys move inside, Home and End go to the ends. */

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** Makes a list one stop of the Tab key, also after a redraw: the element that was used last, or the first. */
export function startRoving(list) {
  const items = () => [...list.querySelectorAll("button, input")].filter((each) => !each.closest("details:not([open])"));
  const mark = (chosen) => {
    for (const each of items()) each.tabIndex = each === chosen ? 0 : -1;
  };
  const settle = () => {
    const all = items();
    mark(all.find((each) => each === document.activeElement) ?? all[0]);
  };
  list.addEventListener("focusin", settle);
  list.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const all = items();
    const place = all.indexOf(event.target);
    if (step === undefined || place < 0) return;
    event.preventDefault();
    all[Math.min(all.length - 1, Math.max(0, place + step))].focus();
  });
  new MutationObserver(settle).observe(list, { childList: true, subtree: true });
  settle();
}
