/** Derives findings (problems to report) from facts. This file performs no I/O: gather.ts has read the facts before. */
import type { Finding } from "../../adapters/cli/diagnose.ts";
import type { SetupCode } from "../../domain/troubles/setup.ts";
import { isLoopback } from "../config/combinations.ts";
import { counted, type Findings, fine, mistake, warning } from "./findings.ts";
import type { ChainFacts, Facts, Listening } from "./gather.ts";
import { judgeChains } from "./judge-chains.ts";
import { judgeDatabase } from "./judge-database.ts";

interface Program {
  /** Version of Node, such as `20.19.0`. */
  readonly nodeVersion: string;
  /** Mistakes of the configuration that `start` would report, one line each. */
  readonly mistakes: readonly string[];
}

/**
 * Derives the problems to report. The facts are absent if the configuration has so many mistakes that nothing could be
 * read.
 */
export function judge({ nodeVersion, mistakes, ...facts }: Program & Partial<Facts>): readonly Finding[] {
  const findings = [judgeNode(nodeVersion), ...mistakes.map((line) => mistake("CONFIGURATION", line))];
  return [...findings, ...(isGathered(facts) ? judgeFacts(facts) : [])].flatMap((finding) => finding || []);
}

function isGathered(facts: Partial<Facts>): facts is Facts {
  return facts.face !== undefined;
}

function judgeFacts(facts: Facts): Findings {
  return [...judgeDatabase(facts), ...judgeChains(facts), ...judgeKeys(facts), ...judgeFace(facts)];
}

function judgeNode(nodeVersion: string): Finding {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  const isOld = major < 20 || (major === 20 && minor < 19);
  return isOld
    ? mistake("NODE_VERSION", `Node ${nodeVersion} is too old`)
    : fine("NODE_VERSION", `Node ${nodeVersion}`);
}

function judgeKeys({ keys, chains }: Facts): Findings {
  const addresses = [...new Set(keys.flatMap((each) => each.addresses))];
  const doubles = addresses.map((address) => {
    const sources = keys.filter((each) => each.addresses.includes(address)).map(({ source }) => source);
    return sources.length > 1 && warning("DOUBLE_KEY", `${address} is given by ${sources.join(" and ")}`);
  });
  return [
    ...keys.map(({ problem }) => problem !== null && mistake(problemOf(problem), problem)),
    ...keys.flatMap(({ warnings }) => warnings.map((line) => warning("KEY_FILE_OPEN", line))),
    addresses.length > 0 && fine("SIGNERS", `${counted(addresses.length, "signer")} can be used: ${listed(addresses)}`),
    ...doubles,
    ...chains.flatMap(judgeBalances),
  ];
}

const MOST_LISTED = 5;

/** Their addresses are needed before the first start: somebody has to send them funds. */
function listed(addresses: readonly string[]) {
  const rest = addresses.length - MOST_LISTED;
  return `${addresses.slice(0, MOST_LISTED).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

/** Finds the code for a problem with a key by the text of its error message. Each line of the text names the file. */
function problemOf(problem: string): SetupCode {
  if (/open to other users/.test(problem)) return "KEY_FILE_OPEN";
  return /wrong password/.test(problem) ? "KEYSTORE_PASSWORD" : "KEYS";
}

/**
 * Reports signers without funds. A signer counts as unfunded only if no endpoint reports a balance above zero: one
 * endpoint may have an older state.
 */
function judgeBalances({ endpoints }: ChainFacts): Findings {
  const answers = endpoints.flatMap((each) => (each.kind === "silent" ? [] : [each]));
  const balances = answers.flatMap((each) => [...each.balances]);
  const funded = new Set(balances.flatMap(([signer, balance]) => (balance > 0n ? [signer] : [])));
  const poor = new Set(balances.flatMap(([signer]) => (funded.has(signer) ? [] : [signer])));
  return [...poor].map((signer) =>
    warning("NO_BALANCE", `${signer} holds nothing on chain ${answers.at(-1)?.chainId}`),
  );
}

const LISTENING = {
  taken: ["PORT_TAKEN", "something else listens there"],
  forbidden: ["PORT_FORBIDDEN", "this user may not listen there"],
  noSuchAddress: ["HOST", "that is no address of this machine"],
} as const satisfies Readonly<Record<Exclude<Listening, "free" | "fencepost">, readonly [SetupCode, string]>>;

function judgeFace({ face: { host, port, listening, asksForKeys } }: Facts): Findings {
  const place = `${host}:${port}`;
  const isOpen = !asksForKeys && !isLoopback(host);
  return [
    judgePort(place, listening),
    isOpen && warning("OPEN_TO_ALL", `nothing asks for a key at ${place}, and others reach it`),
  ];
}

function judgePort(place: string, listening: Listening): Finding {
  if (listening === "free") return fine("PORT", `${place} is free`);
  if (listening === "fencepost")
    return fine("PORT", `a node of Fencepost listens at ${place}: another one here needs another port`);
  const [code, text] = LISTENING[listening];
  return mistake(code, `${place}: ${text}`);
}
