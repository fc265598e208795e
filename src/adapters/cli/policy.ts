/** `fencepost policy`: shows, changes and checks the policy document, and shows its usage. */
import type { Command } from "commander";
import type { Address, ApplyPolicies, PoliciesInForce, PolicyCheck, PolicyUsage, PolicyVerdict } from "../../client/index.ts";
import { misused } from "./failure.ts";
import { askNode, CHAIN_ID, count, json, type RemotePorts } from "./remote.ts";
import { tableOf } from "./table.ts";
import type { Paint } from "./terminal.ts";

export function addPolicy(program: Command, ports: RemotePorts): void {
  const policy = program.command("policy").description("what signers and API keys may do, and up to how much");
  askNode(policy.command("show").description("print the policies that are in force on every node"), ports, {
    ask: (client) => client.policies(),
    show: inForce,
  });
  const apply = policy
    .command("apply")
    .description("put another policy document in force on every node, without a restart")
    .argument("<file>", "the document, in JSON; - is standard input");
  askNode(apply, ports, {
    ask: async (client, change: Omit<ApplyPolicies, "policies">, file) =>
      client.applyPolicies({ policies: readDocument(file, await ports.io.read(file)), ...change }),
    show: inForce,
  })
    .requiredOption("--reason <text>", "why, for the audit")
    .option("--expected-version <number>", "refuse if the version in force is another one", count);
  const check = policy
    .command("check")
    .description("check whether a transaction would be allowed now, and what it would be charged; nothing is sent");
  askNode(check, ports, {
    ask: (client, request: PolicyCheck) => client.checkPolicy(request),
    show: verdictInWords,
  })
    .requiredOption("--signer <address>", "who would send it")
    .requiredOption("--payload <json>", 'as in POST /tx: {"to":"0x…","value":"1"}', json)
    .addOption(CHAIN_ID)
    .option("--key <name>", "ask for another API key");
  askNode(policy.command("usage").description("print what is used of this hour and day"), ports, {
    ask: (client, query: { readonly signer?: Address; readonly key?: string }) => client.policyUsage(query),
    show: usageTable,
  })
    .option("--signer <address>", "of this signer alone")
    .option("--key <name>", "of this API key alone");
}

function readDocument(file: string, text: string): ApplyPolicies["policies"] {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw misused(`${file}: is not JSON: ${(error as Error).message}`);
  }
}

function inForce({ version, hash, policies, changedAt, changedBy, reason }: PoliciesInForce) {
  if (hash === null) return "no policy is in force: nothing is limited\n";
  const change = `version ${version}, ${changedAt}, by ${changedBy}: ${reason}`;
  return `${change}\n${hash}\n${JSON.stringify(policies, null, 2)}\n`;
}

function verdictInWords({ allowed, awaitsApproval, rule, detail, value, cost }: PolicyVerdict) {
  const charged = `it moves ${value} wei, and costs ${cost} wei at most`;
  if (!allowed) return `not allowed by ${rule}: ${detail}; ${charged}\n`;
  return awaitsApproval === true
    ? `would wait for approval by ${rule}: ${detail}; ${charged}\n`
    : `allowed: ${charged}\n`;
}

function usageTable({ at, signers, keys }: PolicyUsage, paint: Paint) {
  const used = [
    ...signers.map((each) => ({ who: each.signer, ...each })),
    ...keys.map((each) => ({ who: `key ${each.key}`, ...each })),
  ];
  return tableOf<(typeof used)[number]>(`nothing is used at ${at}`, {
    who: "who",
    chain: "chainId",
    "value, hour": ({ hour }) => `${hour.value} of ${hour.maxValue ?? "any"}`,
    "cost, hour": ({ hour }) => `${hour.cost} of ${hour.maxCost ?? "any"}`,
    "value, day": ({ day }) => `${day.value} of ${day.maxValue ?? "any"}`,
    "cost, day": ({ day }) => `${day.cost} of ${day.maxCost ?? "any"}`,
  })({ items: used }, paint);
}
