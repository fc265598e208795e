import type { Finding } from "../../adapters/cli/diagnose.ts";
import type { ChainFacts, Facts } from "./facts.ts";
import { counted, fine, mistake, warning } from "./findings.ts";

export function judgeKeys({ keys, chains }: Facts): readonly Finding[] {
  const problems = keys.flatMap(({ source, problem }) => (problem === null ? [] : [judgeProblem(source, problem)]));
  const warnings = keys.flatMap(({ warnings }) =>
    warnings.map((line) =>
      warning("KEY_FILE_OPEN", line, "let the key's file belong to the user that runs nodes, and to no other"),
    ),
  );
  const addresses = [...new Set(keys.flatMap((each) => each.addresses))];
  const usable = addresses.length === 0 ? [] : [fine("SIGNERS", `${counted(addresses.length, "signer")} can be used`)];
  return [...problems, ...warnings, ...usable, ...judgeDoubles(keys), ...chains.flatMap(judgeBalances)];
}

/** By what the one that opens keys says; each of its lines names the file. */
function judgeProblem(source: string, problem: string): Finding {
  if (/open to other users/.test(problem)) {
    return mistake("KEY_FILE_OPEN", problem, "chmod 600: a key that others can read is theirs");
  }
  if (/wrong password/.test(problem)) {
    return mistake(
      "KEYSTORE_PASSWORD",
      problem,
      "see that FENCEPOST_KEYSTORE_PASSWORD_FILE holds the password that the key was stored under",
    );
  }
  return mistake("KEYS", problem, `see ${source} in docs/signers.md`);
}

function judgeDoubles(keys: Facts["keys"]): readonly Finding[] {
  const owners = new Map<string, string[]>();
  for (const { source, addresses } of keys) {
    for (const address of addresses) owners.set(address, [...(owners.get(address) ?? []), source]);
  }
  return [...owners].flatMap(([address, sources]) =>
    sources.length < 2
      ? []
      : [
          warning(
            "DOUBLE_KEY",
            `${address} is given by ${sources.join(" and ")}`,
            "keep each key in one place: the other copy is one more that can leak",
          ),
        ],
  );
}

/** By the best informed endpoint: what one says is had. */
function judgeBalances({ endpoints }: ChainFacts): readonly Finding[] {
  const most = new Map<string, bigint>();
  let chainId = 0;
  for (const endpoint of endpoints) {
    if (endpoint.kind === "silent") continue;
    chainId = endpoint.chainId;
    for (const [signer, balance] of endpoint.balances) {
      if (balance >= (most.get(signer) ?? 0n)) most.set(signer, balance);
    }
  }
  return [...most].flatMap(([signer, balance]) =>
    balance > 0n
      ? []
      : [
          warning(
            "NO_BALANCE",
            `${signer} holds nothing on chain ${chainId}`,
            "send it some: every transaction costs gas",
          ),
        ],
  );
}
