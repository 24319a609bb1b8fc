parts.asked = block => {
  const asked = block.asked, names = new Map(block.rows.map((row, place) => [row.name, asked.rows[place]]));
  const most = Math.max(1, ...asked.curves.flatMap(row => row.labels));
  const ticks = Array.from({length: 5}, (_, part) => Math.round(most * part / 4));
  const picture = ([key, title]) => {
    const all = asked.curves.map(row => ({name: row.name, dashed: row.dashed, faint: isFaint(block, row.name), points: row.labels.map((labels, place) => ({x: labels, y: row[key][place], text: `${row.name}, ${labels} labels: ${number(row[key][place])} %`}))}));
    const series = byResult(shown(block)).reverse().map(row => all.find(one => one.name === row.name));
    return lineChart({title: asked.titles[key], series, all, xTitle: "labels", ticks, most});
  };
  const rows = shown(block).map(row => ({name: row.name, cells: names.get(row.name)}));
  const caption = `${block.title}: what the labels that were asked for bring, mean over seeds`;
  const sorted = asked.columns[3];
  return section("What labels bring", table({key: "asked", caption, columns: asked.columns.map(title => ({title})), rows, sorted}), ...asked.notes.map(quiet), pictures(...Object.entries(asked.titles).map(picture)));
};
