/** Pixels of the marks, rendered once: drawing a node copies a few numbers, fast enough for 20,000 nodes a frame. */

import { colourOf, drawMark, MARKS } from "./map_marks.js";

export const HALO = 2 * MARKS.length; // the number of the stamp below a selected node
const RED_BLUE = 0xff00ff; // bits of a pixel
const GREEN = 0x00ff00;

/** The number of the stamp of a node. */
export function stampOf(mark, filled) {
  return 2 * mark + (filled ? 1 : 0);
}

/**
 * All stamps for a size of the marks and a width of the canvas, in pixels of the canvas.
 * Each has a side length and the offsets of its pixels from its upper left corner: opaque pixels, and translucent
 * pixels at the edge of the mark.
 */
export function makeStamps(radius, width) {
  const side = 2 * Math.ceil(1.5 * radius + 2) + 1;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [side, side];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const ground = colourOf("--surface");
  const read = (drawing) => {
    context.clearRect(0, 0, side, side);
    drawing();
    return stampFrom(context.getImageData(0, 0, side, side), width);
  };
  const middle = side / 2;
  const stamps = MARKS.flatMap(({ colour }, mark) =>
    [true, false].map((hollow) =>
      read(() => drawMark(context, mark, middle, middle, radius, colourOf(colour), ground, hollow)),
    ),
  );
  stamps.push(
    read(() => {
      context.beginPath();
      context.arc(middle, middle, middle - 1, 0, 2 * Math.PI);
      context.fillStyle = colourOf("--accent");
      context.fill();
    }),
  );
  return { side, stamps };
}

function stampFrom({ data, width: side }, width) {
  const [solid, soft] = [[], []];
  for (let at = 0; at < side * side; at += 1) {
    const alpha = data[4 * at + 3];
    const colour = packed(data[4 * at], data[4 * at + 1], data[4 * at + 2]);
    const offset = Math.floor(at / side) * width + (at % side);
    if (alpha > 250) solid.push([offset, colour]);
    else if (alpha > 5) soft.push([offset, colour, Math.round((alpha * 256) / 255)]);
  }
  return {
    solid: Int32Array.from(solid, ([offset]) => offset),
    colours: Uint32Array.from(solid, ([, colour]) => colour),
    soft: Int32Array.from(soft, ([offset]) => offset),
    tints: Uint32Array.from(soft, ([, tint]) => tint),
    alphas: Uint16Array.from(soft, ([, , alpha]) => alpha),
  };
}

/** A pixel of an image as a number; assumes little-endian byte order, as on all machines with browsers. */
export function packed(red, green, blue) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Draws a stamp into pixels; corner: the place of its upper left pixel. */
export function press(pixels, { solid, colours, soft, tints, alphas }, corner) {
  for (let at = 0; at < solid.length; at += 1) pixels[corner + solid[at]] = colours[at];
  for (let at = 0; at < soft.length; at += 1) {
    const place = corner + soft[at];
    const below = pixels[place];
    const tint = tints[at];
    const alpha = alphas[at];
    const redBlue = ((tint & RED_BLUE) * alpha + (below & RED_BLUE) * (256 - alpha)) / 256;
    const green = ((tint & GREEN) * alpha + (below & GREEN) * (256 - alpha)) / 256;
    pixels[place] = (0xff000000 | (redBlue & RED_BLUE) | (green & GREEN)) >>> 0;
  }
}
