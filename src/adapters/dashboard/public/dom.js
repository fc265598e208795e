/**
 * Virtual elements (`h`) and their rendering (`draw`). Text is always set as text, never as markup, so request ids
 * and contract errors cannot inject any.
 *
 * @import { Child, Key, VElement } from "../page-types.ts"
 * @typedef {{
 *   readonly key?: Key | undefined,
 *   readonly class?: string | null | undefined,
 *   readonly style?: Readonly<Record<string, string>>,
 *   readonly onclick?: On<MouseEvent, HTMLElement>,
 *   readonly onmousedown?: On<MouseEvent, HTMLElement>,
 *   readonly onpointerdown?: On<PointerEvent, HTMLElement>,
 *   readonly onpointermove?: On<PointerEvent, HTMLElement>,
 *   readonly onpointerup?: On<PointerEvent, HTMLElement>,
 *   readonly onpointerleave?: On<PointerEvent, HTMLElement>,
 *   readonly oninput?: On<InputEvent, HTMLInputElement>,
 *   readonly onchange?: On<Event, HTMLInputElement>,
 *   readonly onkeydown?: On<KeyboardEvent, HTMLInputElement>,
 *   readonly onwheel?: On<WheelEvent, HTMLElement>,
 *   readonly onblur?: On<FocusEvent, HTMLInputElement>,
 *   readonly onsubmit?: On<SubmitEvent, HTMLFormElement>,
 *   readonly [attribute: string]: unknown,
 * }} Properties
 */

/**
 * A handler of an event.
 *
 * @template {Event} E
 * @template {Element} T
 * @typedef {((event: E & { readonly currentTarget: T, readonly target: T }) => unknown) | null | undefined} On
 */

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "path", "rect", "line", "polyline", "text", "title"]);
/** Attributes that are set as DOM properties: after user input, setting the attribute itself has no effect. */
const LIVE = new Set(["value", "checked", "disabled", "selected", "open"]);
/** Allowed link targets: this page, sibling pages, or http(s). Script URLs are never allowed. */
const SAFE_LINK = /^(#|https?:\/\/|[a-z]+$)/i;

/**
 * Key and properties with which each node was last rendered.
 *
 * @type {WeakMap<Node, { readonly key: Key, readonly properties: VElement["properties"] }>}
 */
const rendered = new WeakMap();

/**
 * Makes a virtual element: `h("p.quiet.wide", properties, ...children)`. `properties` is optional: attributes, `on…`
 * handlers, `style` as an object, and `key` to identify the element in a list.
 *
 * @param {string} selector
 * @param {[first?: Properties | Child, ...rest: Child[]]} content
 * @returns {VElement}
 */
export function h(selector, ...content) {
  const [tag = "", ...classes] = selector.split(".");
  const [first, ...rest] = content;
  const { key, ...properties } = isProperties(first) ? first : { key: undefined };
  const named = classes.length > 0 ? { ...properties, class: classes.join(" ") } : properties;
  return { tag, key, properties: named, children: isProperties(first) ? rest : [first, ...rest] };
}

/**
 * @param {Properties | Child} first
 * @returns {first is Properties}
 */
function isProperties(first) {
  return typeof first === "object" && first !== null && !Array.isArray(first) && !("tag" in first);
}

/**
 * A child with its key. A child without one is known by its place, so that a sibling that appears or disappears does not
 * change which element it is: it keeps its focus, its selection and its scroll position.
 *
 * @typedef {{ readonly key: Key, readonly what: VElement | string }} Placed
 */

/**
 * @param {Child} child
 * @param {string} place
 * @param {Placed[]} into
 */
function collect(child, place, into) {
  if (child === null || child === undefined || child === false) return into;
  if (typeof child === "string" || typeof child === "number") into.push({ key: place, what: String(child) });
  else if ("tag" in child) into.push({ key: child.key ?? place, what: child });
  else for (const [index, each] of child.entries()) collect(each, `${place}/${index}`, into);
  return into;
}

/**
 * Updates the children of `parent` with minimal changes, so that focus and scrolling are kept.
 *
 * @param {Node} parent
 * @param {Child[]} wanted
 */
export function draw(parent, ...wanted) {
  const placed = collect(wanted, "", []);
  const kept = keepOnly(parent, placed);
  let next = parent.firstChild;
  for (const { key, what } of placed) {
    const node = kept.get(key) ?? made(key, what);
    if (node === next) next = next.nextSibling;
    else place(parent, node, next);
    if (typeof what === "object") update(/** @type {HTMLElement} */ (node), key, what);
    else if (node.nodeValue !== what) node.nodeValue = what;
  }
}

/**
 * Removes the children that are not wanted any more, and returns the others by their key.
 *
 * @param {Node} parent
 * @param {readonly Placed[]} placed
 */
function keepOnly(parent, placed) {
  const tags = new Map(placed.map(({ key, what }) => [key, typeof what === "object" ? what.tag : "#text"]));
  /** @type {Map<Key, ChildNode>} */
  const kept = new Map();
  for (const node of [...parent.childNodes]) {
    const key = rendered.get(node)?.key;
    if (key !== undefined && tags.get(key) === node.nodeName.toLowerCase()) kept.set(key, node);
    else remove(node);
  }
  return kept;
}

/**
 * Removes a node. If a row of a table had the focus, the row after it gets the focus, else the one before it.
 *
 * @param {ChildNode} node
 */
function remove(node) {
  const heir =
    node instanceof HTMLTableRowElement && node.contains(document.activeElement)
      ? (node.nextElementSibling ?? node.previousElementSibling)?.querySelector("a")
      : null;
  node.remove();
  heir?.focus({ preventScroll: true });
}

/**
 * Inserts a node. An element that moves in the document loses its focus, so the focus is set again.
 *
 * @param {Node} parent
 * @param {Node} node
 * @param {Node | null} next
 */
function place(parent, node, next) {
  const active = document.activeElement;
  const hadFocus = active instanceof HTMLElement && node.contains(active);
  parent.insertBefore(node, next);
  if (hadFocus) active.focus({ preventScroll: true });
}

/**
 * @param {Key} key
 * @param {VElement | string} what
 * @returns {ChildNode}
 */
function made(key, what) {
  const node =
    typeof what === "string"
      ? document.createTextNode(what)
      : SVG_TAGS.has(what.tag)
        ? document.createElementNS(SVG, what.tag)
        : document.createElement(what.tag);
  rendered.set(node, { key, properties: {} });
  return node;
}

/**
 * @param {HTMLElement} element
 * @param {Key} key
 * @param {VElement} wanted
 */
function update(element, key, { properties, children }) {
  const before = rendered.get(element)?.properties ?? {};
  for (const name of Object.keys(before)) if (!(name in properties)) set(element, name, null);
  draw(element, children);
  for (const [name, value] of Object.entries(properties)) {
    // Compare a property with the last rendering, not with the document, so that user input is kept.
    if (before[name] !== value) set(element, name, value);
  }
  rendered.set(element, { key, properties });
}

/**
 * @param {HTMLElement} element
 * @param {string} name
 * @param {unknown} value
 */
function set(element, name, value) {
  if (name.startsWith("on") || (LIVE.has(name) && name in element)) {
    Object.assign(element, { [name]: name.startsWith("on") ? value : (value ?? "") });
  }
  // `initially` sets a field's first value only; user input is kept.
  else if (name === "initially") element.setAttribute("value", String(value ?? ""));
  else if (name === "style") {
    const rules = /** @type {Record<string, string>} */ (value ?? {});
    for (const [rule, to] of Object.entries(rules)) element.style.setProperty(rule, to);
  } else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (name === "href" && !SAFE_LINK.test(String(value))) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element #${id}`);
  return element;
}

/**
 * @param {string} id
 * @returns {HTMLDialogElement}
 */
export function dialogById(id) {
  return /** @type {HTMLDialogElement} */ (byId(id));
}
