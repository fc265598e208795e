import type { Address, Hex } from "../../../domain/lane.ts";
import type { Message, MessageToSign } from "../../../domain/messages/message.ts";
import { SignerAway } from "../../../ports/signer.ts";
import { shorten } from "../codec/error-texts.ts";
import { typedDataForm } from "../codec/typed-data-form.ts";
import type { Endpoints } from "../rpc/endpoints.ts";
import { BadAnswer, RpcErrorAnswer, RpcUnreachable } from "../rpc/rpc-errors.ts";
import { provenSignature } from "../signers/recovery.ts";

/**
 * Lets a chain node sign a message with its own key, and checks the signature. One endpoint is asked, a private one if
 * there is any: another may not hold the key, and as few endpoints as possible see the content.
 */
export async function signAtNode(
  endpoints: Endpoints,
  address: Address,
  { message, digest }: Omit<MessageToSign, "chainId">,
): Promise<Hex> {
  const [endpoint] = [...endpoints.senders(true), ...endpoints.senders(false)];
  if (endpoint === undefined) throw new SignerAway("no endpoint could be asked to sign");
  const { label } = endpoint.rpc;
  const answer = await endpoints
    .askOne(endpoint, (rpc) => rpc.request(...requestOf(address, message)))
    .catch((error: unknown) => {
      const isAnswer = error instanceof RpcErrorAnswer || error instanceof BadAnswer;
      if (!isAnswer && !(error instanceof RpcUnreachable)) throw error;
      throw new SignerAway(isAnswer ? `${label} refused to sign: ${shorten(error.message)}` : error.message, {
        cause: error,
      });
    });
  return provenSignature(answer, { address, digest, label });
}

function requestOf(address: Address, message: Message): [method: string, params: readonly unknown[]] {
  if (message.kind === "personal") return ["personal_sign", [message.bytes, address]];
  return ["eth_signTypedData_v4", [address, JSON.stringify(typedDataForm(message))]];
}
