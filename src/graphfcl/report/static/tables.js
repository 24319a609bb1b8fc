/* A table that its heads sort.
   columns: {title, low, current}, of which `low` says that small figures are good.
   rows: {kind, name, cells: [text or {text, value, best}]}; the first cell is the head of its row.
   below: rows that stay under the others. sorted: the column that the rows are sorted by at first. */
function table({key, caption, columns, rows, below = [], sorted}) {
  const body = element("tbody"), foot = below.length ? [element("tbody", {class: "below"})] : [];
  const heads = columns.map(column => {
    const button = element("button", {type: "button"}, column.title || "–", element("span", {class: "arrow", "aria-hidden": "true"}, "↕"));
    const kind = [column.title.length > 24 ? "long" : "", column.current ? "current" : ""].filter(Boolean).join(" ");
    return {column, button, cell: element("th", {scope: "col", ...(kind ? {class: kind} : {})}, button)};
  });
  const lines = rows.map(row => ({row, node: lineOfTable(row)})), last = below.map(row => ({row, node: lineOfTable(row)}));
  const apply = sort => {
    const place = columns.findIndex(column => sort && column.title === sort.column);
    heads.forEach(({cell, button}, position) => {
      position === place ? cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending") : cell.removeAttribute("aria-sort");
      button.lastChild.textContent = position !== place ? "↕" : sort.down ? "▼" : "▲";
    });
    body.replaceChildren(...inOrder(lines, place, sort).map(line => line.node));
    foot.forEach(node => node.replaceChildren(...inOrder(last, place, sort).map(line => line.node)));
  };
  const current = () => columns.some(column => column.title === (choice.sorts.get(key) || {}).column) ? choice.sorts.get(key) : sorted && {column: sorted, down: !columns.find(column => column.title === sorted).low};
  heads.forEach(({column, button}, place) => button.addEventListener("click", () => {
    const before = current(), numeric = rows.some(row => typeof sortValue(row.cells[place]) === "number");
    choice.sorts.set(key, {column: column.title, down: before && before.column === column.title ? !before.down : numeric && !column.low});
    apply(current());
    writeAddress();
  }));
  apply(current());
  const head = element("thead", {}, element("tr", {}, ...heads.map(head => head.cell)));
  const whole = element("table", {id: `table-${key}`}, element("caption", {}, element("span", {}, caption)), head, body, ...foot);
  return element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": caption}, whole);
}
function lineOfTable(row) {
  const cells = row.cells.map((cell, place) => {
    const text = typeof cell === "object" ? cell.text : cell;
    if (place === 0) return element("th", {scope: "row"}, ...(row.name === undefined ? [] : [swatch(row.name)]), text);
    const kind = row.text === place ? "text" : typeof cell === "object" && cell.best ? "best" : "";
    return element("td", kind ? {class: kind} : {}, text);
  });
  return element("tr", row.kind ? {class: row.kind} : {}, ...cells);
}
// A number where a cell begins with one, else its text; null where it is empty.
function sortValue(cell) {
  if (typeof cell === "object" && cell.value !== undefined) return cell.value;
  const text = typeof cell === "object" ? cell.text : cell;
  if (text === "") return null;
  const found = /^(?:< )?([+-]?[\d,]*\.?\d+)(?=$|[ /])/.exec(text);
  return found ? Number(found[1].replaceAll(",", "")) : text;
}
// Empty cells last, whichever way; numbers before texts.
function inOrder(lines, place, sort) {
  if (place < 0) return lines;
  const sign = sort.down ? -1 : 1;
  const values = new Map(lines.map(line => [line, sortValue(line.row.cells[place])]));
  return [...lines].sort((a, b) => {
    const one = values.get(a), other = values.get(b);
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return sign * (typeof one === "number" ? one - other : one.localeCompare(other, "en", {numeric: true}));
  });
}
