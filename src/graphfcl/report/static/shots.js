// Accuracy against labels per new class: a picture for each dataset, and the table of the chosen one.
function shotChart(block, curves, metric) {
  const labels = place => curves.labels[place], most = curves.labels.length - 1;
  const all = curves.rows.map(row => {
    const points = row[metric].map((value, place) => value && {
      x: place, y: value.mean, low: value.interval === null ? null : value.mean - value.interval, high: value.interval === null ? null : value.mean + value.interval,
      text: `${row.name}, ${labels(place)} labels per new class: ${spread(value)} %`,
    });
    return {name: row.name, points: points.filter(Boolean), faint: isFaint(block, row.name), dashed: row.marks.includes("uses pool labels")};
  });
  const last = one => one.points.length ? one.points[one.points.length - 1].y : 0;
  const series = all.filter(one => !choice.hidden.has(one.name)).sort((a, b) => b.faint - a.faint || last(a) - last(b));
  return {title: curves.dataset, place: `${curves.tables[metric].title}`, series, all, xTitle: "labels per new class", ticks: curves.labels.map((_, place) => place), most, tickText: labels};
}
parts.shots = block => {
  const own = data.shots[block.shots], beside = data.shots.filter(one => ["grid", "protocol", "track"].every(key => one[key] === own[key]));
  const sorted = own.labels[own.labels.length - 1];
  return Object.entries(data.shot_titles).map(([metric, title]) => section(`Labels per new class: ${title}`, chartRow(beside.map(one => shotChart(block, one, metric))), table(`shots-${metric}`, own.tables[metric], {sorted})));
};
