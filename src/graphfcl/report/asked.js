  if (block.asked) {
    const asked = block.asked, visible = asked.curves.filter(row => !hidden.has(row.name));
    const picture = ([key, title]) => {
      const width = 460, height = 300, left = 38, bottom = 34, top = 10, right = 12;
      const most = Math.max(1, ...asked.curves.flatMap(row => row.labels));
      const x = value => left + (width - left - right) * value / most, y = value => top + (height - top - bottom) * (100 - value) / 100;
      const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title});
      for (let value = 0; value <= 100; value += 20) {
        svg.append(element("line", {class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value)}));
        svg.append(element("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, String(value)));
      }
      for (let part = 0; part <= 4; part++) svg.append(element("text", {x: x(most * part / 4), y: height - 14, "text-anchor": "middle"}, String(Math.round(most * part / 4))));
      svg.append(element("text", {x: (left + width) / 2, y: height - 1, "text-anchor": "middle"}, "labels"));
      for (const row of visible) {
        const points = row.labels.map((labels, place) => [labels, row[key][place]]);
        svg.append(element("path", {d: points.map(([labels, value], place) => `${place ? "L" : "M"}${x(labels)},${y(value)}`).join(""), fill: "none", stroke: colourOf(row.name), "stroke-width": 2, ...(row.dashed ? {"stroke-dasharray": "6 4"} : {})}));
        for (const [labels, value] of points) svg.append(hint(element("circle", {cx: x(labels), cy: y(value), r: 5, fill: "transparent"}), `${row.name}, ${labels} labels: ${number(value)} %`));
      }
      return figure(title, svg);
    };
    const names = new Map(block.rows.map((row, place) => [row.name, asked.rows[place]]));
    const body = rows.map(row => ({cells: names.get(row.name)}));
    place.append(section("What labels bring", table(asked.columns, body), ...asked.notes.map(note => element("p", {class: "quiet"}, note)), element("div", {class: "pictures"}, ...Object.entries(asked.titles).map(picture))));
  }
