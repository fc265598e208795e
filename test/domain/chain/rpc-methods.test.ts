import { describe, expect, it } from "vitest";
import { actingWordIn, READ_METHODS } from "../../../src/domain/chain/rpc-methods.ts";

describe("a method that an operator adds to /rpc", () => {
  it.each([
    ["klay_sendTransaction", "send"],
    ["eth_signTransaction", "sign"],
    ["eth_signTypedData_v4", "sign"],
    ["zks_sendRawTransactionWithDetailedOutput", "send"],
    ["eea_sendRAWTransaction", "send"],
    ["eth_submitWork", "submit"],
    ["istanbul_propose", "propose"],
    ["anvil_setBalance", "set"],
    ["evm_mine", "mine"],
    ["personal_unlockAccount", "unlock"],
    ["personal_importRawKey", "import"],
    ["wallet_batchSends", "send"],
    ["wallet_batchSigns", "sign"],
    ["bor_bulk_sendAll", "send"],
    ["eth_SEND", "send"],
    ["txpool_getAndSubmit", "submit"],
    ["eth_resend", "send"],
    ["eth_sendrawtransaction", "send"],
    ["klay_SeNdTx", "send"],
    // protects [Attacks] src/domain/chain/rpc-methods.ts, src/main/config/parsers.ts
  ])("is refused if the method's name contains an action word: %s (%s)", (method, word) => {
    expect(actingWordIn(method)).toBe(word);
  });

  it.each([
    "bor_getSigners",
    "clique_getSnapshot",
    "zks_getL1BatchDetails",
    "debug_traceTransaction",
    "eth_getSettings",
    "linea_getProof",
    "eth_mining",
    "arb_important",
    "signer_status",
  ])("is accepted if its name contains no action word: %s", (method) => {
    expect(actingWordIn(method)).toBeNull();
  });

  it("is checked for action words that no built-in read method contains", () => {
    expect([...READ_METHODS].filter((method) => actingWordIn(method) !== null)).toEqual([]);
  });
});
