/**
 * The signing process. It holds the keys and checks every request itself. It receives one start message with the keys,
 * then requests, and ends when its channel closes.
 */
import type { Duplex } from "node:stream";
import { finished } from "node:stream/promises";
import { FencepostError } from "../../../../domain/errors.ts";
import { beyondBounds, beyondMessageBounds, type SigningBounds } from "../../../../domain/keys/signing.ts";
import type { Address } from "../../../../domain/lane.ts";
import type { MessageToSign } from "../../../../domain/messages/message.ts";
import type { Clock } from "../../../../ports/clock.ts";
import { type Signer, SignerAway, SigningRefused } from "../../../../ports/signer.ts";
import { messageDigest } from "../../codec/message-digest.ts";
import { openSigner } from "../open-signer.ts";
import { PayloadMemory } from "./payload-memory.ts";
import {
  type Beginning,
  decodeBeginning,
  decodeMessages,
  decodePolicies,
  decodeRequest,
  encodeFailure,
  encodeSignatures,
  encodeSigned,
  Lines,
  MESSAGES,
  type MessageRequest,
  POLICIES,
  type SignRequest,
} from "./wire.ts";

export interface ServeSignerPorts {
  readonly clock: Clock;
  /**
   * Makes the function that masks secrets (keys, passwords, tokens) of the start message, and of the files that it
   * names, in every text that leaves the process.
   */
  readonly maskOf: (beginning: Beginning) => Promise<(text: string) => string>;
}

/**
 * The responses of one turn of the event loop are written together. Once they contain this many signatures, they are
 * written at once, without waiting for the end of the turn.
 */
const ENOUGH = 64;

/** Serves signing requests. Resolves when either side closes the channel. */
export async function serveSigner(channel: Duplex, ports: ServeSignerPorts): Promise<void> {
  const lines = new Lines();
  const say = answersTo(channel, ports.clock);
  let serving: Promise<(line: string) => Promise<void>> | null = null;
  channel.setEncoding("utf8");
  channel.on("data", (chunk: string) => {
    for (const line of lines.take(chunk)) {
      if (line === "?") say("?");
      else if (serving === null) serving = begin(line, ports, say);
      else void serving.then((serve) => serve(line));
    }
  });
  await finished(channel, { writable: false }).catch(() => undefined);
  channel.destroy();
}

/** Collects the responses of one turn of the event loop into one write. */
function answersTo(channel: Duplex, clock: Clock) {
  let waiting = "";
  let total = 0;
  const send = () => {
    if (waiting !== "" && channel.writable) channel.write(waiting);
    waiting = "";
    total = 0;
  };
  return (line: string, weight = ENOUGH) => {
    if (waiting === "" && weight < ENOUGH) clock.soon(send);
    waiting += `${line}\n`;
    total += weight;
    if (total >= ENOUGH) send();
  };
}

type Say = ReturnType<typeof answersTo>;

async function begin(line: string, { clock, maskOf }: ServeSignerPorts, say: Say) {
  let mask = (_: string) => "it could not begin";
  try {
    const beginning = decodeBeginning(line);
    mask = await maskOf(beginning);
    const warn = (message: string) => say(`w${mask(message)}`);
    const { sources, environment, bounds } = beginning;
    const signer = await openSigner({ sources, environment, clock, warn, startWorker: null });
    const addresses = signer.addresses();
    const atNode = addresses.filter((address) => signer.custody(address) === "node");
    say(`h${JSON.stringify({ addresses, atNode, curve: signer.curve })}`);
    return serving(signer, bounds, say, mask);
  } catch (error) {
    say(`f${encodeFailure(error, mask)}`);
    return async () => undefined;
  }
}

function serving(signer: Signer, first: SigningBounds, say: Say, mask: (text: string) => string) {
  const memory = new PayloadMemory();
  let bounds = first;
  const refuse = ({ address, term, transactions }: SignRequest) => {
    requirePolicies(bounds);
    for (const [index, each] of transactions.entries()) {
      const why = beyondBounds(bounds, address, each);
      if (why !== null) throw new SigningRefused(index, why);
    }
    const refusal = memory.admit(address, term, transactions);
    if (refusal !== null) throw new SigningRefused(refusal.index, refusal.message, refusal.undeclared);
  };
  const sign = async ({ address, term, transactions }: SignRequest) => {
    try {
      return await signer.sign(address, transactions);
    } catch (error) {
      const signed = error instanceof SignerAway ? error.signed.length : 0;
      memory.notSigned(address, term, transactions.slice(signed));
      throw error;
    }
  };
  const answer = async (line: string) => {
    if (line.startsWith(MESSAGES)) {
      const { id, address, messages } = readMessages(line);
      const signatures = await signer.signMessages(address, toSign(bounds, address, messages));
      return say(`=${encodeSignatures(id, signatures)}`, signatures.length);
    }
    const request = decodeRequest(line);
    refuse(request);
    const signed = await sign(request);
    say(`=${encodeSigned(request.id, signed)}`, signed.length);
  };
  return async (line: string) => {
    if (line.startsWith(POLICIES)) {
      bounds = { ...bounds, policies: decodePolicies(line) };
      return;
    }
    try {
      await answer(line);
    } catch (error) {
      const [id = ""] = /\d+/.exec(line) ?? [];
      say(`!${id} ${encodeFailure(error, mask)}`);
    }
  };
}

/** Refuses until the policies are known: the node sends them before it requests signatures for a lane. */
function requirePolicies({ policies }: SigningBounds) {
  if (policies === null) throw new SignerAway("the signing process has not received the policies yet");
}

function readMessages(line: string) {
  try {
    return decodeMessages(line);
  } catch (error) {
    if (error instanceof FencepostError) throw new SigningRefused(0, `it is no message: ${error.message}`);
    throw error;
  }
}

/** The messages with digests of this process's own, if the rules of the signer's policy allow them all. */
function toSign(bounds: SigningBounds, address: Address, messages: MessageRequest["messages"]) {
  requirePolicies(bounds);
  return messages.map((each, index): MessageToSign => {
    const why = beyondMessageBounds(bounds, address, each);
    if (why !== null) throw new SigningRefused(index, why);
    return { ...each, digest: messageDigest(each.message) };
  });
}
