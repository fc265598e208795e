/** What people may see of a URL, and what must be kept out of every log line because of it. */
import { sendRuleOf } from "../../adapters/evm/rpc/send-rule.ts";
import { MASK } from "../../domain/mask.ts";
import { parseUrl } from "./credentials.ts";

/** Providers put their token into the path; words of a real path are shorter than this. */
const LONGEST_PLAIN_SEGMENT = 15;
const SECRET_PARAMETER = /pass|secret|token|key/i;

/** User, host and database stay readable. */
export function maskDatabaseUrl(value: string): string {
  const url = parseUrl(value);
  if (url === null) return MASK;
  const password = url.password === "" ? "" : `:${MASK}`;
  const user = url.username === "" && password === "" ? "" : `${url.username}${password}@`;
  return `${url.protocol}//${user}${url.host}${url.pathname}${query(url, (key) => SECRET_PARAMETER.test(key))}`;
}

/** Host and short path segments stay readable: user, password, query values and long segments may be the token. */
export function maskRpcUrl(value: string): string {
  const url = parseUrl(value);
  if (url === null) return MASK;
  const user = url.username === "" && url.password === "" ? "" : `${MASK}@`;
  const path = url.pathname.split("/").map(maskToken).join("/");
  const rule = sendRuleOf(value) === null ? "" : url.hash;
  return `${url.protocol}//${user}${url.host}${path}${query(url, () => true)}${rule}`;
}

/** A module's path is no secret. */
export function maskHookPlace(value: string): string {
  return parseUrl(value) === null ? value : maskRpcUrl(value);
}

export function secretsOfDatabaseUrl(value: string): readonly string[] {
  const url = parseUrl(value);
  if (url === null) return [];
  const parameters = [...url.searchParams].filter(([key]) => SECRET_PARAMETER.test(key)).map(([, text]) => text);
  return spellings([url.password, ...parameters], value);
}

export function secretsOfRpcUrl(value: string): readonly string[] {
  const url = parseUrl(value);
  if (url === null) return [];
  const { username, password, pathname, searchParams } = url;
  return spellings([username, password, ...pathname.split("/").filter(isToken), ...searchParams.values()], value);
}

export function secretsOfRpcUrls(urls: readonly string[]): readonly string[] {
  return urls.flatMap(secretsOfRpcUrl);
}

/** All that follows the host: what is told to a hook, or in a chat, is told to whoever knows its path. */
export function secretsOfHookPlace(value: string): readonly string[] {
  const url = parseUrl(value);
  return url === null ? [] : [...secretsOfRpcUrl(value), url.pathname, `${url.pathname}${url.search}`];
}

function query(url: URL, isSecret: (key: string) => boolean): string {
  const pairs = [...url.searchParams].map(([key, text]) => `${maskToken(key)}=${isSecret(key) ? MASK : text}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function maskToken(segment: string): string {
  return isToken(segment) ? MASK : segment;
}

function isToken(segment: string): boolean {
  return segment.length > LONGEST_PLAIN_SEGMENT;
}

/** As the URL parser spells a secret, decoded, and as it was typed: an error message may quote any of them. */
function spellings(secrets: readonly string[], url: string): readonly string[] {
  const typed = /^[^/]*\/\/[^/?#]*?:([^/?#]*)@/.exec(url)?.[1] ?? "";
  const all = [...secrets.flatMap((secret) => [secret, decoded(secret)]), typed];
  return [...new Set(all)].filter((secret) => secret !== "");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
