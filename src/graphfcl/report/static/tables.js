/* A table of the data that its heads sort; rows of hidden methods are left out.
   columns: places of the columns that are shown. names: rows that are shown, in this order (default: all but hidden).
   sorted: the column that rows are sorted by at first. current: places of columns to underline. text: columns of long texts. */
function table(key, own, {columns = own.columns.map((_, place) => place), names, sorted, current = [], text = []} = {}) {
  const body = element("tbody"), foot = own.below ? [element("tbody", {class: "below"})] : [];
  const heads = columns.map(place => {
    const title = own.columns[place], button = element("button", {type: "button"}, title || "–", element("span", {class: "arrow", "aria-hidden": "true"}, "↕"));
    const kind = [title.length > 24 ? "long" : "", current.includes(place) ? "current" : ""].filter(Boolean).join(" ");
    return {place, title, button, cell: element("th", {scope: "col", ...(kind ? {class: kind} : {})}, button)};
  });
  const bold = new Set(own.bold.map(String)), first = own.rows.length - own.below;
  const lines = own.rows.map((cells, row) => ({cells, row, name: own.names[row], printed: row >= first, bold: cells.map((_, place) => bold.has(`${row},${place}`))}));
  for (const line of lines) line.node = lineOfTable(line, columns, text);
  const wanted = names ? names.map(name => lines.find(line => line.name === name)) : lines.filter(line => !choice.hidden.has(line.name));
  let order = wanted;
  const apply = sort => {
    const at = heads.find(head => sort && head.title === sort.column);
    for (const head of heads) {
      head === at ? head.cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending") : head.cell.removeAttribute("aria-sort");
      head.button.lastChild.textContent = head !== at ? "↕" : sort.down ? "▼" : "▲";
    }
    order = [false, true].flatMap(printed => inOrder(wanted.filter(line => line.printed === printed), at ? at.place : -1, sort));
    body.replaceChildren(...order.filter(line => !line.printed).map(line => line.node));
    foot.forEach(node => node.replaceChildren(...order.filter(line => line.printed).map(line => line.node)));
  };
  const low = title => own.low.includes(title);
  const chosen = () => heads.some(head => head.title === (choice.sorts.get(key) || {}).column) ? choice.sorts.get(key) : sorted && {column: sorted, down: !low(sorted)};
  for (const head of heads) head.button.addEventListener("click", () => {
    const before = chosen(), numeric = wanted.some(line => typeof sortValue(line.cells[head.place]) === "number");
    choice.sorts.set(key, {column: head.title, down: before && before.column === head.title ? !before.down : numeric && !low(head.title)});
    apply(chosen());
    writeAddress();
  });
  apply(chosen());
  const head = element("thead", {}, element("tr", {}, ...heads.map(head => head.cell)));
  const whole = element("table", {id: `table-${key}`}, element("caption", {}, element("span", {}, own.title)), head, body, ...foot);
  const picked = cells => columns.map(place => cells[place]);
  const saved = () => ({...own, columns: picked(own.columns), rows: order.map(line => picked(line.cells)), bold: order.map(line => picked(line.bold))});
  const buttons = element("p", {class: "buttons"}, saveButton("CSV", () => saveFile(fileName(own.title, "csv"), "text/csv", csvText(saved()))), " ", saveButton("LaTeX", () => saveFile(fileName(own.title, "tex"), "text/x-tex", latexText(saved()))));
  const wide = element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": own.title}, whole);
  // Columns stop at the edge of the first one, which stays: its width is known once the table is on the page.
  const stop = () => Object.assign(wide.style, {scrollPaddingLeft: `${heads[0].cell.offsetWidth}px`, scrollSnapType: "x mandatory"});
  new ResizeObserver(stop).observe(heads[0].cell);
  return element("div", {}, wide, buttons, ...own.notes.map(quiet));
}
function lineOfTable(line, columns, text) {
  const cells = columns.map((place, number) => {
    if (number === 0) return element("th", {scope: "row"}, ...(line.name === undefined ? [] : [swatch(line.name)]), line.cells[place]);
    const kind = text.includes(place) ? "text" : line.bold[place] ? "best" : "";
    return element("td", kind ? {class: kind} : {}, line.cells[place]);
  });
  const kind = line.printed ? "printed" : line.bold[0] ? "best" : "";
  return element("tr", kind ? {class: kind} : {}, ...cells);
}
// A number where a text begins with one, else the text; null where it is empty.
function sortValue(text) {
  if (text === "") return null;
  const found = /^(< )?([+-]?[\d,]*\.?\d+)(?=$|[ /])/.exec(text);
  return found ? Number(found[2].replaceAll(",", "")) - (found[1] ? 1e-9 : 0) : text;
}
// Empty cells last, whichever way; numbers before texts.
function inOrder(lines, place, sort) {
  if (place < 0) return lines;
  const sign = sort.down ? -1 : 1;
  const values = new Map(lines.map(line => [line, sortValue(line.cells[place])]));
  return [...lines].sort((a, b) => {
    const one = values.get(a), other = values.get(b);
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return sign * (typeof one === "number" ? one - other : one.localeCompare(other, "en", {numeric: true}));
  });
}
