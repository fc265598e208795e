/**
 * What a page should look like (`h`) and how it comes to look like that (`draw`). Text only ever becomes text: there is no way
 * from here to markup, whatever a caller wrote into a request id or a contract into its error.
 */

const KEY = Symbol("key");
const PROPERTIES = Symbol("properties");
const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "rect", "line", "polyline"]);
/** Set as properties: once somebody has typed or chosen something, the attribute says nothing any more. */
const LIVE = new Set(["value", "checked", "disabled", "selected", "open"]);
/** Links lead into this page, beside it, or to an http address: never to a script. */
const SAFE_LINK = /^(#|https?:\/\/|[a-z]+$)/i;

/** An element to be: attributes, `on…` handlers, `style` as an object, `key` to recognise it in a list. */
export function h(tag, properties, ...children) {
  const { key, ...rest } = properties ?? {};
  return { tag, key, properties: rest, children: flat(children) };
}

function flat(children) {
  return children
    .flat(Number.POSITIVE_INFINITY)
    .filter((child) => child !== null && child !== undefined && child !== false);
}

/** Makes the children of `parent` what they should be, and touches only what is different: focus and scrolling stay. */
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
    // Compared with what was drawn last, not with what is there: what somebody is typing stays.
    if (before[name] !== value) set(element, name, value);
  }
  element[PROPERTIES] = properties;
}

function set(element, name, value) {
  if (name.startsWith("on")) element[name] = value;
  else if (LIVE.has(name) && name in element) element[name] = value ?? "";
  // What a field begins with: typed over, it stays.
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
