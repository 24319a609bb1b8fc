/** A dialog to choose a class: typing narrows the list down, the arrow keys move in it, Enter takes the marked class. */

import { actions, field, open, submit } from "./dialogs.js";
import { button, element, fill } from "./dom.js";

/** Resolves to one of `names` or null. The first of them is marked until something is typed. */
export function chooseClass(title, names) {
  return open(title, (close) => {
    const list = element("ul", { class: "choices", id: "choices", role: "listbox", "aria-label": "Classes" });
    const { input, row } = field("Type a few letters", {
      autofocus: true,
      role: "combobox",
      "aria-controls": "choices",
      "aria-expanded": "true",
      "aria-autocomplete": "list",
    });
    let matches = names;
    let marked = 0;
    const mark = (place) => {
      marked = place;
      [...list.children].forEach((each, position) => each.setAttribute("aria-selected", String(position === place)));
      if (matches.length > 0) input.setAttribute("aria-activedescendant", `choice-${place}`);
      else input.removeAttribute("aria-activedescendant");
      list.children[place]?.scrollIntoView({ block: "nearest" });
    };
    const show = () => {
      matches = matching(names, input.value);
      const options = matches.map((name, place) =>
        element("li", { role: "option", id: `choice-${place}`, on: { click: () => close(name) } }, name),
      );
      fill(list, options.length > 0 ? options : element("li", { class: "hint" }, "No class has these letters."));
      mark(0);
    };
    input.addEventListener("input", show);
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step === undefined || matches.length === 0) return;
      event.preventDefault();
      mark((marked + step + matches.length) % matches.length);
    });
    show();
    const take = (event) => {
      event.preventDefault();
      if (matches.length > 0) close(matches[marked]);
    };
    return [row, list, actions(submit("Choose", take), button("Cancel", () => close(null)))];
  });
}

/** Names that contain the typed letters; those that start with them come first. */
function matching(names, typed) {
  const letters = typed.trim().toLowerCase();
  const holding = names.filter((name) => name.toLowerCase().includes(letters));
  const begins = (name) => name.toLowerCase().startsWith(letters);
  return [...holding.filter(begins), ...holding.filter((name) => !begins(name))];
}
