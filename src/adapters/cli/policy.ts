/** `fencepost policy`: shows, changes and checks the policy document, and shows its usage. */
import { type Command, Option } from "commander";
import type { ApplyPolicies, PoliciesInForce, PolicyCheck, PolicyUsage, PolicyVerdict } from "../../client/index.ts";
import { given } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { askNode, chainIdOption, count, json, type RemotePorts } from "./remote.ts";
import { listing } from "./table.ts";

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
  askNode(apply, ports, { ask: async (client) => client.applyPolicies(await applied(apply, ports)), show: inForce })
    .requiredOption("--reason <text>", "why, for the audit")
    .addOption(
      new Option("--expected-version <number>", "refuse if the version in force is another one").argParser(count),
    );
  const check = policy
    .command("check")
    .description("check whether a transaction would be allowed now, and what it would be charged; nothing is sent");
  askNode(check, ports, {
    ask: (client) => {
      const { signer, payload, chainId, key } = check.opts<PolicyCheck>();
      return client.checkPolicy({ signer, payload, ...given({ chainId, key }) });
    },
    show: verdictInWords,
  })
    .requiredOption("--signer <address>", "who would send it")
    .requiredOption("--payload <json>", 'as in POST /tx: {"to":"0x…","value":"1"}', json)
    .addOption(chainIdOption())
    .option("--key <name>", "ask for another API key");
  const usage = policy.command("usage").description("print what is used of this hour and day");
  askNode(usage, ports, {
    ask: (client) => {
      const { signer, key } = usage.opts<{ readonly signer?: string; readonly key?: string }>();
      return client.policyUsage(given({ signer, key }));
    },
    show: usageTable,
  })
    .option("--signer <address>", "of this signer alone")
    .option("--key <name>", "of this API key alone");
}

async function applied(command: Command, { io }: RemotePorts): Promise<ApplyPolicies> {
  const [file = "-"] = command.args;
  const { reason, expectedVersion } = command.opts<Omit<ApplyPolicies, "policies">>();
  const document = readDocument(file, await io.read(file));
  return { policies: document, reason, ...given({ expectedVersion }) };
}

function readDocument(file: string, text: string): ApplyPolicies["policies"] {
  try {
    return JSON.parse(text) as ApplyPolicies["policies"];
  } catch (error) {
    throw new CommandFailed([`${file}: is not JSON: ${(error as Error).message}`], EXIT_CODES.misused);
  }
}

function inForce({ version, hash, policies, changedAt, changedBy, reason }: PoliciesInForce): string {
  if (hash === null) return "no policy is in force: nothing is limited\n";
  const change = `version ${version}, ${changedAt}, by ${changedBy}: ${reason}`;
  return `${change}\n${hash}\n${JSON.stringify(policies, null, 2)}\n`;
}

function verdictInWords({ allowed, awaitsApproval, rule, detail, value, cost }: PolicyVerdict): string {
  const charged = `it moves ${value} wei, and costs ${cost} wei at most`;
  if (!allowed) return `not allowed by ${rule}: ${detail}; ${charged}\n`;
  return awaitsApproval === true
    ? `would wait for approval by ${rule}: ${detail}; ${charged}\n`
    : `allowed: ${charged}\n`;
}

function usageTable({ at, signers, keys }: PolicyUsage): string {
  const of = (used: number | bigint | string, most: string | null) => `${used} of ${most ?? "any"}`;
  const rows = [
    ...signers.map(({ signer, ...used }) => ({ who: signer, ...used })),
    ...keys.map(({ key, ...used }) => ({ who: `key ${key}`, ...used })),
  ].map(({ who, chainId, hour, day }) => [
    ...[who, String(chainId), of(hour.value, hour.maxValue), of(hour.cost, hour.maxCost)],
    ...[of(day.value, day.maxValue), of(day.cost, day.maxCost)],
  ]);
  if (rows.length === 0) return `nothing is used at ${at}\n`;
  return listing(["who", "chain", "value, hour", "cost, hour", "value, day", "cost, day"], rows);
}
