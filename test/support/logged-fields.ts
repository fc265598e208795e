import { readFileSync } from "node:fs";

/** The log fields that each shared type adds to an event. */
const SHARED: Readonly<Record<string, readonly string[]>> = {
  OfLane: ["chainId", "signer"],
  OfTerm: ["chainId", "signer", "fencingToken"],
  OfTransaction: ["chainId", "signer", "txId", "nonce"],
  OfChain: ["chainId"],
  OfEndpoint: ["chainId", "endpoint"],
  OfSubscriber: ["subscriber"],
  AlertSubject: ["code", "chainId", "signer", "txId", "endpoint", "subscriber"],
};

/**
 * Fields of events that are logged under another name or not at all: the transition and a message become `msg`; a trace
 * is not logged but recorded separately.
 */
const RENAMED: Readonly<Record<string, string | null>> = {
  event: null,
  message: null,
  traceparent: null,
  token: "fencingToken",
  from: "fromState",
};

/**
 * Every event and the fields of its log line, as the port declares them. Only names are needed, so the source is read
 * as text.
 */
export function loggedFields(): ReadonlyMap<string, readonly string[]> {
  const source = readFileSync("src/ports/telemetry.ts", "utf8")
    .replace(/\/\*\*[\s\S]*?\*\//g, "")
    .replace(/^\s*\n/gm, "");
  const [, body = ""] = /interface Events \{([\s\S]*?)\n\}/.exec(source) ?? [];
  const events = `${body}\n`.matchAll(/^ {2}"?([\w.]+)"?: ([\s\S]*?);\n(?= {2}"?\w|$)/gm);
  return new Map([...events].map(([, name = "", type = ""]) => [name, fieldsOf(name, type)]));
}

function fieldsOf(name: string, type: string): readonly string[] {
  const shared = (type.match(/\b(Of\w+|AlertSubject)\b/g) ?? []).flatMap((each) => SHARED[each] ?? []);
  const own = [...type.matchAll(/[{;\n]\s*(\w+)\??:/g)].map(([, field = ""]) => field);
  const said = own.flatMap((field) => {
    if (field === "from" && name !== "tx.transition") return [field];
    return RENAMED[field] === undefined ? [field] : (RENAMED[field] ?? []);
  });
  return [...new Set([...shared, ...said])];
}
