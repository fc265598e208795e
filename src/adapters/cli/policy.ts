/** `fencepost policy`: shows, changes and checks the policy document, and shows its usage. */
import type { Command } from "commander";
import type {
  Address,
  ApplyPolicies,
  PoliciesInForce,
  PolicyCheck,
  PolicyUsage,
  PolicyVerdict,
} from "../../client/index.ts";
import { roughly } from "./amounts.ts";
import { given } from "./answer.ts";
import { misused } from "./failure.ts";
import { addIntent, type IntentOptions, intentsOf } from "./intent.ts";
import { askNode, count, json, type RemotePorts } from "./remote.ts";
import { dated, indented } from "./shorten.ts";
import { readTypedData } from "./signatures.ts";
import { id, spare, tableOf } from "./table.ts";
import type { View } from "./terminal.ts";

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
    .description("check whether a transaction or message would be allowed now, and what it counts; nothing is done");
  askNode(check, ports, {
    ask: async (client, options: CheckOptions, ...args) => client.checkPolicy(await checkOf(options, args, ports)),
    show: verdictInWords,
  });
  addIntent(check)
    .option("--payload <json>", 'the whole payload as in POST /tx, such as {"to":"0x…","value":"1"}', json)
    .option("--message <text>", "a personal message to sign, instead of a transaction")
    .option("--typed-data <file>", "typed data to sign (EIP-712), instead of a transaction; - is standard input")
    .option("--key <name>", "ask for another API key");
  askNode(policy.command("usage").description("print what is used of this hour and day"), ports, {
    ask: (client, query: { readonly signer?: Address; readonly key?: string }) => client.policyUsage(query),
    show: usageTable,
  })
    .option("--signer <address>", "of this signer alone")
    .option("--key <name>", "of this API key alone");
}

interface CheckOptions extends IntentOptions, Pick<PolicyCheck, "key"> {
  readonly payload?: PolicyCheck["payload"];
  readonly message?: string;
  readonly typedData?: string;
}

/** Builds the request of `policy check` from the options of `send`, or from the whole payload. */
async function checkOf(
  { payload, key, message, typedData, ...options }: CheckOptions,
  args: readonly string[],
  { io }: RemotePorts,
): Promise<PolicyCheck> {
  const { signer, chainId } = options;
  if (payload !== undefined || message !== undefined || typedData !== undefined) {
    if (signer === undefined) throw misused("--signer is missing: name the sender");
    const data = given({ typedData: typedData === undefined ? undefined : await readTypedData(typedData, io) });
    return { signer, ...given({ payload, message, chainId, key }), ...data };
  }
  const [intent, ...others] = await intentsOf(args, options, io.read);
  if (intent === undefined || others.length > 0) throw misused("--file must have one transaction to check");
  return { ...(intent as PolicyCheck), ...given({ key }) };
}

function readDocument(file: string, text: string): ApplyPolicies["policies"] {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw misused(`${file}: is not JSON: ${(error as Error).message}`);
  }
}

function inForce({ version, hash, policies, changedAt, changedBy, reason }: PoliciesInForce, view: View) {
  if (hash === null) return "no policy is in force: nothing is limited\n";
  const change = `version ${version}, ${changedAt === null ? "-" : dated(changedAt, view)}, by ${changedBy}: ${reason}`;
  return `${indented("", change, view)}\n${hash}\n${JSON.stringify(policies, null, 2)}\n`;
}

function verdictInWords({ allowed, awaitsApproval, rule, detail, value, cost, counts }: PolicyVerdict, view: View) {
  const verdict = allowed ? "would wait for approval" : "not allowed";
  const judged = allowed && awaitsApproval !== true ? "allowed:" : `${verdict} by ${rule}: ${detail};`;
  const effect = counts === undefined ? `it moves ${value} wei, and costs ${cost} wei at most` : countsInWords(counts);
  return `${indented("", `${judged} ${effect}`, view)}\n`;
}

function countsInWords({ rule, amount, hour, day }: NonNullable<PolicyVerdict["counts"]>) {
  const window = (name: string, { amount: sum, signatures, maxAmount, maxSignatures }: typeof hour) =>
    `${name} ${signatures} of ${maxSignatures ?? "any"} signatures, amount ${sum} of ${maxAmount ?? "any"}`;
  return `rule ${rule} counts an amount of ${amount}; counted before: ${window("hour", hour)}; ${window("day", day)}`;
}

function usageTable({ at, signers, keys }: PolicyUsage, view: View) {
  const used = [
    ...signers.map((each) => ({ who: each.signer, ...each })),
    ...keys.map((each) => ({ who: `key ${each.key}`, ...each })),
  ];
  return tableOf<(typeof used)[number]>(`nothing is used at ${at}`, {
    who: id("who"),
    chain: "chainId",
    "value, hour": ({ hour }) => usedOf(hour.value, hour.maxValue, view),
    "cost, hour": spare(({ hour }) => usedOf(hour.cost, hour.maxCost, view), 2),
    "value, day": ({ day }) => usedOf(day.value, day.maxValue, view),
    "cost, day": spare(({ day }) => usedOf(day.cost, day.maxCost, view), 1),
  })({ items: used }, view);
}

/** Amounts in wei have up to 78 digits: a terminal shows ether instead. */
function usedOf(used: string, most: string | null, { width }: View) {
  if (width === null) return `${used} of ${most ?? "any"}`;
  return `${roughly(used)} of ${most === null ? "any" : roughly(most)} ETH`;
}
