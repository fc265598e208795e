/** From facts to findings. Nothing here asks anybody: the facts were gathered before. */
import type { Finding } from "../../adapters/cli/diagnose.ts";
import type { SetupCode } from "../../domain/troubles/setup.ts";
import { isLoopback } from "../config/combinations.ts";
import type { Facts, Listening } from "./facts.ts";
import { counted, fine, mistake, warning } from "./findings.ts";
import { judgeChains } from "./judge-chains.ts";
import { judgeDatabase } from "./judge-database.ts";

export function judge(facts: Facts): readonly Finding[] {
  return [
    judgeNode(facts),
    ...facts.mistakes.map((line) => mistake("CONFIGURATION", line)),
    ...judgeDatabase(facts),
    ...judgeChains(facts),
    ...judgeKeys(facts),
    ...judgeFace(facts),
  ];
}

function judgeNode({ nodeVersion }: Facts): Finding {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  const isOld = major < 20 || (major === 20 && minor < 19);
  return isOld
    ? mistake("NODE_VERSION", `Node ${nodeVersion} is too old`)
    : fine("NODE_VERSION", `Node ${nodeVersion}`);
}

function judgeKeys({ keys, chains }: Facts): readonly Finding[] {
  const addresses = [...new Set(keys.flatMap((each) => each.addresses))];
  const doubles = addresses.flatMap((address) => {
    const sources = keys.flatMap((each) => (each.addresses.includes(address) ? [each.source] : []));
    return sources.length < 2 ? [] : [warning("DOUBLE_KEY", `${address} is given by ${sources.join(" and ")}`)];
  });
  return [
    ...keys.flatMap(({ problem }) => (problem === null ? [] : [mistake(problemOf(problem), problem)])),
    ...keys.flatMap(({ warnings }) => warnings.map((line) => warning("KEY_FILE_OPEN", line))),
    ...(addresses.length === 0 ? [] : [fine("SIGNERS", `${counted(addresses.length, "signer")} can be used`)]),
    ...doubles,
    ...chains.flatMap(judgeBalances),
  ];
}

/** By the words of the code that opens keys; each of its lines names the file. */
function problemOf(problem: string): SetupCode {
  if (/open to other users/.test(problem)) return "KEY_FILE_OPEN";
  return /wrong password/.test(problem) ? "KEYSTORE_PASSWORD" : "KEYS";
}

/** A signer has nothing if no endpoint says otherwise: one may know an older balance. */
function judgeBalances({ endpoints }: Facts["chains"][number]): readonly Finding[] {
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

function judgeFace({ face: { host, port, listening, asksForKeys } }: Facts): readonly Finding[] {
  const place = `${host}:${port}`;
  const isOpen = !asksForKeys && !isLoopback(host);
  const unguarded = `nothing asks for a key at ${place}, and others reach it`;
  const open = isOpen ? [warning("OPEN_TO_ALL", unguarded)] : [];
  if (listening === "free") return [fine("PORT", `${place} is free`), ...open];
  if (listening === "fencepost") return [fine("PORT", `a node of Fencepost listens at ${place}`), ...open];
  const [code, text] = LISTENING[listening];
  return [mistake(code, `${place}: ${text}`), ...open];
}
