  if (block.further) {
    const keys = Object.keys(block.further);
    const body = rows.map(row => ({cells: [row.name, ...keys.map(key => spread(row.further[key]))]}));
    const curve = ([key, title]) => lines({rows: block.rows.map(row => ({...row, curve: row.curves[key]}))}, "curve", title);
    place.append(section("Further measures", table(["method", ...keys.map(key => block.further[key])], body), element("div", {class: "pictures"}, ...Object.entries(block.curves).map(curve))));
  }
