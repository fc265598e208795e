/** Text only ever becomes text: what callers wrote into request ids or metadata can not become markup here. */

/**
 * An element with properties (class, title, ...), `on` handlers and children; null children are left out.
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element #${id}`);
  return element;
}

export function shortHex(hex) {
  return hex.length <= 14 ? hex : `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}

/** Hex that is cut short on the page, whole in its title. */
export function hexOf(hex) {
  return hex === null ? h("span", { class: "quiet" }, "none yet") : h("code", { title: hex }, shortHex(hex));
}

const WEI_DIGITS = 18;

export function etherOf(wei) {
  const digits = wei.padStart(WEI_DIGITS + 1, "0");
  const whole = digits.slice(0, -WEI_DIGITS).replace(/\B(?=(\d{3})+$)/g, ",");
  const fraction = digits.slice(-WEI_DIGITS).slice(0, 4).replace(/0+$/, "");
  if (whole === "0" && fraction === "" && wei !== "0") return "< 0.0001";
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

export function gweiOf(wei) {
  const gwei = Number(wei) / 1e9;
  return gwei.toLocaleString("en", { maximumSignificantDigits: 4 });
}

/** Decimal ether to wei, without a detour through floating point. */
export function weiOf(ether) {
  const [whole, fraction = ""] = ether.split(".");
  return BigInt(whole + fraction.padEnd(WEI_DIGITS, "0")).toString();
}

export function timeOf(iso) {
  return new Date(iso).toLocaleTimeString([], { hour12: false });
}

export function agoOf(iso, now) {
  const seconds = Math.max(0, Math.round((now - Date.parse(iso)) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}
