/** From facts to findings. Nothing here asks anybody: what is judged was gathered before. */
import type { Finding } from "../../adapters/cli/diagnose.ts";
import { isLoopback } from "../config/combinations.ts";
import type { Facts, Listening } from "./facts.ts";
import { fine, mistake, warning } from "./findings.ts";
import { judgeChains } from "./judge-chains.ts";
import { judgeDatabase } from "./judge-database.ts";
import { judgeKeys } from "./judge-keys.ts";

export function judge(facts: Facts): readonly Finding[] {
  return [
    judgeNode(facts),
    ...facts.mistakes.map(judgeMistake),
    ...judgeDatabase(facts),
    ...judgeChains(facts),
    ...judgeKeys(facts),
    ...judgeFace(facts),
  ];
}

const OLDEST_NODE = [20, 19] as const;

function judgeNode({ nodeVersion }: Facts): Finding {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  const isOld = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
  if (isOld) return mistake("NODE_VERSION", `Node ${nodeVersion} is too old`, `use ${OLDEST_NODE.join(".")} or newer`);
  return fine("NODE_VERSION", `Node ${nodeVersion}`);
}

/** `FENCEPOST_PORT: is not …` names the setting; what to do stands in the line. */
function judgeMistake(line: string): Finding {
  return mistake(
    "CONFIGURATION",
    line,
    "set it in the environment or in fencepost.config.ts; docs/configuration.md has every setting",
  );
}

const LISTENING: Readonly<Record<Exclude<Listening, "free" | "fencepost">, readonly [string, string, string]>> = {
  taken: ["PORT_TAKEN", "something else listens there", "stop it, or choose another with FENCEPOST_PORT"],
  forbidden: ["PORT_FORBIDDEN", "this user may not listen there", "choose a port from 1024 on with FENCEPOST_PORT"],
  noSuchAddress: ["HOST", "that is no address of this machine", "correct FENCEPOST_HOST; 0.0.0.0 is all of them"],
};

function judgeFace({ face }: Facts): readonly Finding[] {
  const { host, port, listening, asksForKeys } = face;
  const place = `${host}:${port}`;
  const open = !asksForKeys && !isLoopback(host);
  const unguarded = open
    ? [
        warning(
          "OPEN_TO_ALL",
          `nothing asks for a key at ${place}, and others reach it`,
          "set FENCEPOST_API_KEYS, or FENCEPOST_HOST=127.0.0.1",
        ),
      ]
    : [];
  if (listening === "free") return [fine("PORT", `${place} is free`), ...unguarded];
  if (listening === "fencepost") return [fine("PORT", `a node of Fencepost listens at ${place}`), ...unguarded];
  const [code, text, fix] = LISTENING[listening];
  return [mistake(code, `${place}: ${text}`, fix), ...unguarded];
}
