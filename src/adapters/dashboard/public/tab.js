/** Shows the number of problems, or that it is unknown, in the tab's title and icon. */
import { attentionSight, world } from "./world.js";

const FENCE =
  "<path d='M1 5l2-3 2 3v10H1zM6 5l2-3 2 3v10H6zM11 5l2-3 2 3v10h-4z'/><path d='M0 7h16v1.6H0zM0 11h16v1.6H0z'/>";
/** Colour of the tab's icon by severity. */
const COLOURS = { calm: "#1f7a4d", warning: "#b36b00", bad: "#c8281c", unknown: "#78857d" };
const MOST = 99;

let drawn = "";

/** @param {string} title */
export function drawTab(title) {
  const { count, mood } = stateOf();
  const mark = count === null ? "(?) " : count === 0 ? "" : `(${count}) `;
  const text = `${mark}${title} · Fencepost`;
  if (document.title !== text) document.title = text;
  const icon = iconOf(count, mood);
  if (icon === drawn) return;
  drawn = icon;
  document.querySelector("link[rel=icon]")?.setAttribute("href", `data:image/svg+xml,${encodeURIComponent(icon)}`);
}

/**
 * State shown by the tab. `count` is null if the number of problems is unknown.
 *
 * @returns {{ readonly count: number | null, readonly mood: keyof typeof COLOURS }}
 */
function stateOf() {
  if (attentionSight().kind !== "live" || world.attention === null) return { count: null, mood: "unknown" };
  const { items, more } = world.attention;
  const count = items.length + more;
  return { count, mood: count === 0 ? "calm" : items[0]?.severity === "WARNING" ? "warning" : "bad" };
}

/**
 * @param {number | null} count
 * @param {keyof typeof COLOURS} mood
 */
function iconOf(count, mood) {
  const colour = COLOURS[mood];
  const fence = `<g fill='${colour}'>${FENCE}</g>`;
  if (count === 0) return svg(fence);
  const text = count === null ? "?" : count > MOST ? "99+" : String(count);
  const size = text.length > 2 ? 8 : text.length > 1 ? 10 : 12;
  const number = `<text x='8' y='12.4' font-size='${size}' font-weight='700' font-family='sans-serif' text-anchor='middle' fill='#fff'>${text}</text>`;
  return svg(`<rect width='16' height='16' rx='4' fill='${colour}'/>${number}`);
}

/** @param {string} content */
function svg(content) {
  return `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>${content}</svg>`;
}
