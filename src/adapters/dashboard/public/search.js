/**
 * Search for ids, hashes, request ids, signers, nonces and nodes.
 *
 * @import { FoundItem } from "../page-types.ts"
 */
import { failureOf, readApi } from "./api.js";
import { byId, h } from "./dom.js";
import { said } from "./parts/words.js";
import { linkTo, toLane, toTransaction, toTransactions } from "./routes.js";
import { pause } from "./world.js";

const TYPING_MS = 150;
const MOST = 12;

/** @type {{ text: string, items: FoundItem[] | null, at: number, problem: string | null, asked: number, isEntered: boolean, of: string }} */
const search = { text: "", items: null, at: 0, problem: null, asked: 0, isEntered: false, of: "" };

const redraw = () => dispatchEvent(new Event("redraw"));

export function searchBox() {
  const isOpen = search.text !== "" && (search.items !== null || search.problem !== null);
  return h(
    "search.search",
    h("input", {
      id: "search",
      type: "search",
      role: "combobox",
      "aria-label": "Search by id, hash, request id, signer or nonce",
      "aria-expanded": String(isOpen),
      "aria-controls": "found",
      "aria-autocomplete": "list",
      "aria-activedescendant": isOpen && (search.items?.length ?? 0) > 0 ? `found-${search.at}` : null,
      placeholder: "Search id, hash, request, signer, nonce",
      autocomplete: "off",
      spellcheck: "false",
      maxlength: "255",
      oninput: typed,
      onkeydown: pressed,
      // Close the list of results with a delay: the click on a result arrives after the search box has lost its focus.
      onblur: () => setTimeout(close, 150),
    }),
    h("kbd", { "aria-hidden": "true" }, "/"),
    h("ul", { id: "found", role: "listbox", "aria-label": "Found", hidden: !isOpen }, isOpen ? results() : null),
  );
}

function results() {
  if (search.problem !== null) return h("li", { role: "option", "aria-disabled": "true" }, search.problem);
  const items = search.items ?? [];
  if (items.length === 0) return h("li", { role: "option", "aria-disabled": "true" }, "Nothing is called that.");
  return items.map((item, index) =>
    h(
      "li",
      {
        key: index,
        id: `found-${index}`,
        role: "option",
        "aria-selected": String(index === search.at),
        onmousedown: () => choose(item),
      },
      h("span.code", item.kind),
      " ",
      said(item.label, 120),
    ),
  );
}

/** @param {{ readonly target: HTMLInputElement }} event */
async function typed(event) {
  search.text = event.target.value.trim();
  search.isEntered = false;
  const turn = ++search.asked;
  if (search.text === "") return close();
  await pause(TYPING_MS);
  if (turn === search.asked) await find();
}

/** Loads the results. If Enter was pressed before they arrived, the first one is opened. */
async function find() {
  const turn = ++search.asked;
  const { text } = search;
  try {
    const { items } = await readApi("/search", { query: { q: text, limit: MOST } });
    if (turn === search.asked) Object.assign(search, { items, of: text, at: 0, problem: null });
  } catch (error) {
    if (turn === search.asked) Object.assign(search, { items: [], problem: failureOf(error).message });
  }
  const [first] = search.items ?? [];
  if (turn === search.asked && search.isEntered && first !== undefined) choose(first);
  else redraw();
}

/** @param {KeyboardEvent & { readonly target: HTMLInputElement }} event */
function pressed(event) {
  const count = search.items?.length ?? 0;
  // Results of an earlier text do not count: Enter after a paste opens what was pasted.
  const chosen = search.of === search.text ? search.items?.[search.at] : undefined;
  if (event.key === "Escape") {
    close();
    event.target.blur();
  } else if (event.key === "Enter" && chosen !== undefined) choose(chosen);
  else if (event.key === "Enter" && search.text !== "" && !search.isEntered) {
    search.isEntered = true;
    void find();
  } else if (event.key === "ArrowDown" && count > 0) search.at = (search.at + 1) % count;
  else if (event.key === "ArrowUp" && count > 0) search.at = (search.at + count - 1) % count;
  else return;
  event.preventDefault();
  redraw();
}

/** @param {FoundItem} item */
function choose(item) {
  const box = /** @type {HTMLInputElement} */ (byId("search"));
  box.value = "";
  close();
  box.blur();
  location.hash = placeOf(item);
}

function close() {
  Object.assign(search, { text: "", items: null, problem: null, isEntered: false });
  redraw();
}

/**
 * Returns the address of a search result's page.
 *
 * @param {FoundItem} item
 */
function placeOf({ kind, txId, chainId, signer, nonce }) {
  if (txId !== undefined) return toTransaction(txId);
  if (signer !== undefined && chainId !== undefined) return toLane(chainId, signer, { at: nonce });
  if (signer !== undefined) return toTransactions({ signer });
  return kind === "node" ? linkTo(["cluster"]) : linkTo([]);
}
