/** `fencepost sign` and `fencepost signatures`: messages that a key signs under policy, and their audit. */
import type { Command } from "commander";
import type {
  Address,
  RequestedSignature,
  RequestSignature,
  SignatureReason,
  SignaturesPage,
  SignaturesQuery,
  SignedMessage,
} from "../../client/index.ts";
import { given } from "./answer.ts";
import { CommandFailed, EXIT_CODES, misused } from "./failure.ts";
import { REASON } from "./operate.ts";
import { askNode, CHAIN_ID, count, json, type RemotePorts } from "./remote.ts";
import { dated, indented, inert } from "./shorten.ts";
import { id, prose, spare, tableOf, time } from "./table.ts";
import type { View } from "./terminal.ts";

interface SignOptions extends Pick<RequestSignature, "chainId" | "requestId"> {
  readonly signer: Address;
  readonly message?: string;
  readonly raw?: `0x${string}`;
  readonly file?: string;
}

export function addSignatures(program: Command, ports: RemotePorts): void {
  const sign = program
    .command("sign")
    .description("sign a message or typed data with a signer's key, if a rule of its policy allows it");
  askNode(sign, ports, {
    ask: async (client, options: SignOptions) => client.sign(await requestOf(options, ports)),
    show: signatureLines,
    judge: ({ state, signatureId }) => {
      if (state === "SIGNED") return;
      const how = `fencepost signatures approve ${signatureId}; then repeat this with the same --request-id`;
      throw new CommandFailed([`it is ${state}, and not signed: ${how}`], EXIT_CODES.failed);
    },
  })
    .requiredOption("--signer <address>", "whose key signs")
    .option("--message <text>", "a personal message (EIP-191), signed as UTF-8")
    .option("--raw <hex>", "the bytes of a personal message, instead of its text")
    .option("--file <file>", "typed data (EIP-712) as JSON, as eth_signTypedData_v4 takes it; - is standard input")
    .option("--request-id <id>", "your own id: a repeat is the same signature; without it, a new one is made up")
    .addOption(CHAIN_ID);
  const signatures = program
    .command("signatures")
    .description("list requested signatures of messages, and decide those that wait for approval");
  askNode(signatures.command("list").description("list them, newest first: what was signed, for whom"), ports, {
    ask: (client, query: SignaturesQuery) => client.signatures(query),
    show: signaturesTable,
  })
    .option("--signer <address>", "of this signer alone")
    .option("--key <name>", "asked for by this API key alone")
    .option("--domain <name>", "for this EIP-712 domain, or sign-in domain, alone")
    .option("--state <state>", "in this state alone, such as AWAITING_APPROVAL")
    .option("--limit <number>", "how many at most", count)
    .option("--after <cursor>", "continue after a page")
    .addOption(CHAIN_ID);
  const onOne = (name: string, description: string) =>
    signatures.command(name).description(description).argument("<signatureId>", "its id");
  askNode(onOne("show", "print one: what was shown, who asked, and the rule that allowed it"), ports, {
    ask: (client, _, signatureId) => client.signature(signatureId),
    show: requestLines,
  });
  askNode(onOne("approve", "allow one that waits for approval; requires a second API key"), ports, {
    ask: (client, order: SignatureReason, signatureId) => client.approveSignature(signatureId, order),
    show: requestLines,
  }).addOption(REASON);
  askNode(onOne("reject", "refuse one that waits for approval; requires a second API key"), ports, {
    ask: (client, order: SignatureReason, signatureId) => client.rejectSignature(signatureId, order),
    show: requestLines,
  }).addOption(REASON);
}

async function requestOf(options: SignOptions, { io }: RemotePorts): Promise<RequestSignature> {
  const { signer, chainId, requestId = `cli-${io.newId()}`, message, raw, file } = options;
  const named = { signer, requestId, ...given({ chainId }) };
  if ([message, raw, file].filter((each) => each !== undefined).length !== 1)
    throw misused("give exactly one of --message, --raw and --file");
  if (message !== undefined) return { ...named, message };
  if (raw !== undefined) return { ...named, message: { raw } };
  return { ...named, typedData: await readTypedData(String(file), io) };
}

/** Reads typed data from a file, or from standard input if its name is `-`. */
export async function readTypedData(
  file: string,
  { read }: Pick<RemotePorts["io"], "read">,
): Promise<NonNullable<RequestSignature["typedData"]>> {
  const text = await read(file);
  try {
    return json(text) as NonNullable<RequestSignature["typedData"]>;
  } catch {
    throw misused(`${file === "-" ? "standard input" : file} is not JSON`);
  }
}

/** The signature alone on its line, so that a script can read it. */
function signatureLines(
  { signature, signatureId, signer, chainId, rule, state, requestId }: SignedMessage,
  view: View,
) {
  const about = `signature ${signatureId} by ${signer} on chain ${chainId} is ${state} by rule ${inert(rule)}, request id ${inert(requestId)}`;
  return `${signature === null ? "" : `${signature}\n`}${indented("", about, view)}\n`;
}

function requestLines(found: RequestedSignature, view: View) {
  const { signatureId, signer, chainId, state, rule, owner, requestId, createdAt, digest } = found;
  const { message, typedData, decision } = found;
  const about = `${signatureId} by ${signer} on chain ${chainId} is ${state} by rule ${inert(rule)}`;
  const asked = `asked for by ${inert(owner ?? "-")} ${dated(createdAt, view)}, request id ${inert(requestId)}`;
  const decided = decision === null ? [] : [`decided by ${inert(decision.actor)}: ${inert(decision.reason)}`];
  const lines = [...[about, asked, ...decided].map((line) => indented("", line, view)), `digest ${digest}`];
  const shown = message === null ? JSON.stringify(typedData, null, 2) : JSON.stringify(message);
  return `${[...lines, ...shown.split("\n").map((line) => indented("  ", line, view))].join("\n")}\n`;
}

const signaturesTable = tableOf<SignaturesPage["items"][number]>("there are no requested signatures", {
  signature: id("signatureId"),
  state: "state",
  signer: id("signer"),
  chain: spare("chainId", 3),
  domain: prose(({ domain }) => domain ?? "-", 2),
  "asked by": prose(({ owner }) => owner ?? "-", 1),
  rule: prose("rule"),
  amount: spare("amount", 2),
  asked: time("createdAt", 4),
});
