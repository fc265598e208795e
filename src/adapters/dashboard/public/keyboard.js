import { byId, dialogById } from "./dom.js";
import { linkTo } from "./routes.js";

/** @type {Readonly<Record<string, readonly string[]>>} */
const PLACES = {
  ...{ n: [], t: ["tx"], l: ["lanes"], f: ["feed"], w: ["webhooks"] },
  ...{ s: ["signatures"], c: ["cluster"], p: ["policies"] },
};
/** Selector of the rows and problems that the keys `j` and `k` move between. */
const ROWS = "main tbody tr, main .trouble";

/** True after `g` was pressed: the next key chooses the page. */
let isGoing = false;

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      isTyping(event.target) ||
      document.querySelector("dialog[open]")
    )
      return;
    const place = isGoing ? PLACES[event.key] : undefined;
    isGoing = event.key === "g" && !isGoing;
    if (place !== undefined) location.hash = linkTo(place);
    else if (event.key === "/") byId("search").focus();
    else if (event.key === "?") dialogById("help-dialog").showModal();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else return;
    event.preventDefault();
  });
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof Element && ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/**
 * Focuses the main link of the next row, which is not always the row's first link.
 *
 * @param {number} by
 */
function step(by) {
  const links = [...document.querySelectorAll(ROWS)]
    .map((row) => /** @type {HTMLElement | null} */ (row.querySelector("a.name, a.hex, a")))
    .filter((link) => link !== null);
  if (links.length === 0) return;
  const at = links.findIndex((link) => link.closest("tr, .trouble")?.contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by));
  links[next]?.focus();
}
