import { invalid } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { Message } from "../../domain/messages/message.ts";
import { parsePersonal, parseTypedData } from "../../domain/messages/parse-message.ts";
import type { Codec } from "../../ports/codec.ts";
import type { SignMessageRequest } from "../api.ts";
import { asObject, refuseUnknownKeys } from "./fields.ts";
import { type NormalisePorts, parseChainId, parseRequestId, parseSigner } from "./normalise.ts";

/** A validated request for a signature. `requestId` null: the caller gave none. */
export interface MessageIntent {
  readonly lane: Lane;
  readonly requestId: string | null;
  readonly message: Message;
}

/** Parses a request for a signature: a personal `message`, or `typedData` as in `eth_signTypedData_v4`. */
export function parseSignMessage(ports: NormalisePorts, request: SignMessageRequest): MessageIntent {
  const body = asObject(request, "");
  refuseUnknownKeys(body, ["chainId", "signer", "requestId", "message", "typedData"], "");
  const signer = parseSigner(ports.codec, body.signer, "signer");
  const requestId = parseRequestId(body.requestId);
  const chainId = parseChainId(ports.chainIds, body.chainId, ports.isServedElsewhere);
  return { lane: { chainId, signer }, requestId, message: messageOf(ports.codec, body) };
}

function messageOf(codec: Codec, { message, typedData }: Readonly<Record<string, unknown>>): Message {
  if ((message === undefined) === (typedData === undefined))
    throw invalid("message", "give either message, for personal_sign, or typedData, for eth_signTypedData_v4");
  if (typedData !== undefined) {
    const { domain, types, primaryType, message: value, ...more } = asObject(typedData, "typedData");
    refuseUnknownKeys(more, [], "typedData");
    return parseTypedData({ domain, types, primaryType, message: value }, codec);
  }
  if (typeof message === "string") return parsePersonal(message);
  const { raw, ...more } = asObject(message, "message");
  refuseUnknownKeys(more, [], "message");
  if (typeof raw !== "string") throw invalid("message.raw", "must be 0x and an even number of hex digits");
  return parsePersonal({ raw });
}
