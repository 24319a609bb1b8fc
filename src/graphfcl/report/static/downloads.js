// Files that the reader saves: a table as CSV or LaTeX, a picture as SVG.
function saveFile(name, type, text) {
  const link = element("a", {href: URL.createObjectURL(new Blob([text], {type: `${type};charset=utf-8`})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const fileName = (title, ending) => `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 200)}.${ending}`;
function saveButton(text, make) {
  const button = element("button", {type: "button", class: "save", "aria-label": `save as ${text}`}, text);
  button.addEventListener("click", make);
  return button;
}
function csvText({columns, rows}) {
  const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  return [columns, ...rows].map(cells => cells.map(quoted).join(",") + "\r\n").join("");
}
// The same text as tables.tex has.
function latexText({title, columns, rows, bold, notes}) {
  const escaped = text => [...text].map(character => data.latex[character] ?? character).join("");
  const cell = (text, row, place) => bold[row][place] && text ? `\\textbf{${escaped(text)}}` : escaped(text);
  return [
    "\\begin{table*}", "\\centering", `\\caption{${escaped(title)}}`, "\\resizebox{\\linewidth}{!}{%",
    `\\begin{tabular}{l${"r".repeat(columns.length - 1)}}`, "\\hline", columns.map(escaped).join(" & ") + " \\\\ \\hline",
    ...rows.map((cells, row) => cells.map((text, place) => cell(text, row, place)).join(" & ") + " \\\\"),
    "\\hline", "\\end{tabular}}", ...notes.map(note => `\\par\\small ${escaped(note)}.`), "\\end{table*}", "",
  ].join("\n");
}
const KEPT = ["fill", "stroke", "stroke-width", "stroke-linejoin", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "paint-order"];
// Other programs know rgb() but not color().
function plainColour(text) {
  const found = /^color\(srgb ([\d.]+) ([\d.]+) ([\d.]+)\)$/.exec(text);
  return found ? `rgb(${found.slice(1).map(part => Math.round(255 * part)).join(", ")})` : text;
}
// A picture in the colours of light ground, with its styles in it, so that it needs no style sheet.
function svgText(svg) {
  const copy = svg.cloneNode(true), parts = [svg, ...svg.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  document.documentElement.classList.add("exported");
  parts.forEach((part, place) => {
    const style = getComputedStyle(part);
    copies[place].removeAttribute("class");
    for (const key of KEPT) copies[place].setAttribute(key, plainColour(style.getPropertyValue(key)));
  });
  document.documentElement.classList.remove("exported");
  for (const part of copies) if (/^(transparent|rgba\(0, 0, 0, 0\))$/.test(part.getAttribute("fill")) && part.tagName !== "svg") part.remove();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}
