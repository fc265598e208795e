/** `fencepost policy`: the document in force, another one, what it would say, and what is used. */
import { type Command, Option } from "commander";
import type { ApplyPolicies, PoliciesInForce, PolicyCheck, PolicyUsage, PolicyVerdict } from "../../client/index.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { type Asking, askNode, chainIdOption, count, json } from "./remote.ts";
import { listing } from "./table.ts";

export function addPolicy(program: Command, asking: Asking): void {
  const policy = program.command("policy").description("what signers and API keys may do, and up to how much");
  askNode(policy.command("show").description("print the policies that are in force on every node"), asking, {
    ask: (client) => client.policies(),
    show: inForce,
  });
  const apply = policy
    .command("apply")
    .description("put another policy document in force on every node, without a restart")
    .argument("<file>", "the document, in JSON; - is standard input");
  askNode(apply, asking, { ask: async (client) => client.applyPolicies(await applied(apply, asking)), show: inForce })
    .addOption(new Option("--reason <text>", "why, for the audit").makeOptionMandatory())
    .addOption(
      new Option("--expected-version <number>", "the version that was read before: refused where it moved").argParser(
        count,
      ),
    );
  const check = policy
    .command("check")
    .description("ask whether a transaction would be allowed now, and what it would be charged; nothing is done");
  askNode(check, asking, { ask: (client) => client.checkPolicy(asked(check)), show: verdictInWords })
    .addOption(new Option("--signer <address>", "who would send it").makeOptionMandatory())
    .addOption(
      new Option("--payload <json>", 'as in POST /tx: {"to":"0x…","value":"1"}').argParser(json).makeOptionMandatory(),
    )
    .addOption(chainIdOption())
    .addOption(new Option("--key <name>", "ask for another API key"));
  const usage = policy.command("usage").description("print what is used of this hour and day");
  askNode(usage, asking, { ask: (client) => client.policyUsage(wanted(usage)), show: usageTable })
    .addOption(new Option("--signer <address>", "of this signer alone"))
    .addOption(new Option("--key <name>", "of this API key alone"));
}

async function applied(command: Command, { io }: Asking): Promise<ApplyPolicies> {
  const [file = "-"] = command.args;
  const { reason, expectedVersion } = command.opts<Omit<ApplyPolicies, "policies">>();
  const document = readDocument(file, await io.read(file));
  return { policies: document, reason, ...(expectedVersion !== undefined && { expectedVersion }) };
}

function readDocument(file: string, text: string): ApplyPolicies["policies"] {
  try {
    return JSON.parse(text) as ApplyPolicies["policies"];
  } catch (error) {
    throw new CommandFailed([`${file}: is not JSON: ${(error as Error).message}`], EXIT_CODES.misused);
  }
}

function asked(command: Command): PolicyCheck {
  const { signer, payload, chainId, key } = command.opts<PolicyCheck>();
  return { signer, payload, ...(chainId !== undefined && { chainId }), ...(key !== undefined && { key }) };
}

function wanted(command: Command): { readonly key?: string; readonly signer?: string } {
  const { signer, key } = command.opts<{ readonly signer?: string; readonly key?: string }>();
  return { ...(signer !== undefined && { signer }), ...(key !== undefined && { key }) };
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
