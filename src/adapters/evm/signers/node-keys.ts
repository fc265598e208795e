import type { Address, Hex } from "../../../domain/lane.ts";
import type { MessageToSign } from "../../../domain/messages/message.ts";
import { type Signer, SigningRefused } from "../../../ports/signer.ts";

/** A chain whose node signs messages with keys of its own. */
export interface SigningChain {
  readonly chainId: number;
  signMessage(address: Address, message: MessageToSign): Promise<Hex>;
}

/** Adds the accounts whose keys the chain nodes hold: the node of the message's chain signs it. */
export function withNodeKeys(signer: Signer, chains: readonly { readonly chain: SigningChain }[]): Signer {
  const atNode = async (address: Address, messages: readonly MessageToSign[]) => {
    const signatures: Hex[] = [];
    for (const [index, message] of messages.entries()) {
      const found = chains.find(({ chain }) => chain.chainId === message.chainId);
      if (found === undefined) throw new SigningRefused(index, `chain ${message.chainId} is not configured`);
      signatures.push(await found.chain.signMessage(address, message));
    }
    return signatures;
  };
  return {
    ...signer,
    signMessages: (address, messages, term) =>
      signer.custody(address) === "node" ? atNode(address, messages) : signer.signMessages(address, messages, term),
  };
}
