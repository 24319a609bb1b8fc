// Tables of colours with the number in each cell. A cell never gets smaller than its number.
const LEAST_CELL = 27, MOST_SESSIONS = 16;

// The sessions that are shown: all, or every k-th and the last, so that they have room for their numbers.
function someSessions(count, room) {
  const most = Math.max(4, Math.min(MOST_SESSIONS, room));
  const every = choice.every || count <= most ? 1 : Math.ceil((count - 1) / (most - 1));
  const sessions = Array.from({length: count}, (_, session) => session).filter(session => session % every === 0 && (session === count - 1 || session + every / 2 < count || every === 1));
  if (sessions[sessions.length - 1] !== count - 1) sessions.push(count - 1);
  return {sessions, every};
}
const foldedNote = (count, every) => every === 1 ? "" : `; every ${every}${every === 2 ? "nd" : every === 3 ? "rd" : "th"} of ${count} sessions` + ((count - 1) % every ? " and the last" : "");

function heat({values, rowNames, columnNames, title, place = "", name, down, across, describe}) {
  const width = pictureWidth(), left = 24 + Math.max(...rowNames.map(text => textWidth(text, 12))), top = 8, bottom = 36;
  const widest = Math.max(...columnNames.map(text => textWidth(text, 12))) + 8;
  const cell = Math.max(LEAST_CELL, widest, Math.min(38, Math.floor((width - left - 4) / columnNames.length))), high = Math.min(cell, 34);
  const whole = left + cell * columnNames.length + 4, height = top + high * rowNames.length + bottom;
  const svg = element("svg", {viewBox: `0 0 ${whole} ${height}`, width: whole, height, role: "img", "aria-label": place + title});
  values.forEach((row, line) => row.forEach((value, column) => {
    if (value === null) return;
    const share = Math.max(0, Math.min(1, value / 100)), group = element("g", {class: "cell"});
    group.append(element("rect", {x: left + column * cell, y: top + line * high, width: cell - 2, height: high - 2, rx: 4, fill: `color-mix(in srgb, rgb(var(--full)) ${Math.round(share * 100)}%, rgb(var(--zero)))`, stroke: "var(--line)"}));
    group.append(element("text", {x: left + column * cell + cell / 2 - 1, y: top + line * high + high / 2 + 3, "text-anchor": "middle", class: share > 0.75 ? "high" : share > 0.6 ? "middle" : "low"}, value.toFixed(0)));
    svg.append(hint(group, describe(line, column, value)));
  }));
  rowNames.forEach((text, line) => svg.append(element("text", {class: "row-name", x: left - 6, y: top + line * high + high / 2 + 3, "text-anchor": "end"}, text)));
  columnNames.forEach((text, column) => svg.append(element("text", {class: "column-name", x: left + column * cell + cell / 2, y: height - 20, "text-anchor": "middle"}, text)));
  svg.append(element("text", {x: left + cell * columnNames.length / 2, y: height - 4, "text-anchor": "middle"}, across));
  svg.append(element("text", {x: -(top + high * rowNames.length / 2), y: 11, transform: "rotate(-90)", "text-anchor": "middle"}, down));
  const scroll = element("div", {class: "scroll", ...(whole > width ? {tabindex: "0", role: "region", "aria-label": title} : {})}, svg);
  return figure(title, scroll, name);
}
function sessionMap(block, row) {
  const count = row.matrix.length, room = Math.floor((pictureWidth() - 44) / LEAST_CELL), {sessions, every} = someSessions(count, room);
  return heat({
    values: sessions.map(t => sessions.map(j => row.matrix[t][j])), rowNames: sessions.map(String), columnNames: sessions.map(String),
    title: `${row.name}: accuracy (%) after session t on the classes of session j${foldedNote(count, every)}`, place: `${block.title}: `, name: row.name, down: "t", across: "j",
    describe: (line, column, value) => `${row.name}, after session ${sessions[line]}, classes of session ${sessions[column]}: ${number(value)} %`,
  });
}
