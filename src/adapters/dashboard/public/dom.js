/**
 * Virtual elements (`h`) and their rendering (`draw`). Text is always set as text, never as markup, so request ids
 * and contract errors cannot inject any.
 */

const KEY = Symbol("key");
const PROPERTIES = Symbol("properties");
const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "rect", "line", "polyline"]);
/** Attributes that are set as DOM properties: after user input, setting the attribute itself has no effect. */
const LIVE = new Set(["value", "checked", "disabled", "selected", "open"]);
/** Allowed link targets: this page, sibling pages, or http(s). Script URLs are never allowed. */
const SAFE_LINK = /^(#|https?:\/\/|[a-z]+$)/i;

/**
 * Makes a virtual element: `h("p.quiet.wide", properties, ...children)`. `properties` is optional: attributes, `on…`
 * handlers, `style` as an object, and `key` to identify the element in a list.
 */
export function h(selector, ...content) {
  const [tag, ...classes] = selector.split(".");
  const { key, ...properties } = hasProperties(content[0]) ? content.shift() : {};
  if (classes.length > 0) properties.class = classes.join(" ");
  return { tag, key, properties, children: flat(content) };
}

function hasProperties(first) {
  return typeof first === "object" && first !== null && !Array.isArray(first) && first.tag === undefined;
}

function flat(children) {
  return children
    .flat(Number.POSITIVE_INFINITY)
    .filter((child) => child !== null && child !== undefined && child !== false);
}

/** Updates the children of `parent` with minimal changes, so that focus and scrolling are kept. */
export function draw(parent, ...wanted) {
  const keyed = new Map();
  for (const node of parent.childNodes) if (node[KEY] !== undefined) keyed.set(node[KEY], node);
  let next = parent.firstChild;
  for (const each of flat(wanted)) {
    const node = found(each, next, keyed) ?? made(each);
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
    if (typeof each === "object") update(node, each);
    else if (node.data !== String(each)) node.data = String(each);
  }
  while (next !== null) {
    const after = next.nextSibling;
    next.remove();
    next = after;
  }
}

function found(each, next, keyed) {
  const node = each.key === undefined ? next : (keyed.get(each.key) ?? null);
  if (node === null || node[KEY] !== each.key) return null;
  return node.nodeName.toLowerCase() === (each.tag ?? "#text") ? node : null;
}

function made(each) {
  if (typeof each !== "object") return document.createTextNode("");
  const element = SVG_TAGS.has(each.tag) ? document.createElementNS(SVG, each.tag) : document.createElement(each.tag);
  element[KEY] = each.key;
  element[PROPERTIES] = {};
  return element;
}

function update(element, { properties, children }) {
  const before = element[PROPERTIES] ?? {};
  for (const name of Object.keys(before)) if (!(name in properties)) set(element, name, null);
  draw(element, children);
  for (const [name, value] of Object.entries(properties)) {
    // Compare a property with the last rendering, not with the document, so that user input is kept.
    if (before[name] !== value) set(element, name, value);
  }
  element[PROPERTIES] = properties;
}

function set(element, name, value) {
  if (name.startsWith("on")) element[name] = value;
  else if (LIVE.has(name) && name in element) element[name] = value ?? "";
  // `initially` sets a field's first value only; user input is kept.
  else if (name === "initially") element.setAttribute("value", value ?? "");
  else if (name === "style") for (const [rule, to] of Object.entries(value ?? {})) element.style.setProperty(rule, to);
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (name === "href" && !SAFE_LINK.test(value)) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element #${id}`);
  return element;
}
