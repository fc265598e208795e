import { mutantsIn } from "../mutant.ts";

export const RECEIPT_AND_FINALITY = [
  ...mutantsIn(
    "src/application/stages/5-receipt/receipt.ts",
    ["test/application/stages/receipt.test.ts"],
    [
      ["a receipt of another block is not recorded", "isCanonical && blockHash === block.hash", "isCanonical"],
      [
        "a receipt of a block that left the window is not recorded",
        "isCanonical && blockHash === block.hash",
        "blockHash === block.hash",
      ],
      [
        "a block with missing receipts is asked again",
        "return isComplete && receipts.length === hashes.length;",
        "return true;",
      ],
      [
        "a receipt of a block that left the chain is not recorded",
        "return receipts.filter(({ blockNumber, blockHash }) => hashAt.get(blockNumber) === blockHash);",
        "return receipts;",
      ],
      [
        "a reported hash is ours only at our nonce",
        "sent.from === indexed.lane.lane.signer && sent.nonce === indexed.tx.nonce) own.push",
        "sent.from === indexed.lane.lane.signer) own.push",
      ],
      [
        "a hash that a signing node reported is checked on the chain",
        'named.kind === "external" || named.nodeSigned === true',
        'named.kind === "external"',
        ["test/application/detours/node-hashes.test.ts"],
      ],
      ["no receipt is recorded while the chain's identity is unsure", "if (isUnsure(lane.pace)) {", "if (false) {"],
      [
        "our own hashes are looked up before another program is suspected",
        'if (tx.receipt !== null || tx.pace.look.kind === "owed") continue;',
        "if (tx.receipt !== null) continue;",
      ],
      [
        "a reported hash is ours only from our signer",
        "sent.from === indexed.lane.lane.signer && sent.nonce === indexed.tx.nonce) own.push",
        "sent.nonce === indexed.tx.nonce) own.push",
      ],
      [
        "a hash that a caller reported is checked on the chain",
        'named.kind === "external" || named.nodeSigned === true',
        "named.nodeSigned === true",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/6-finality/finality.ts",
    ["test/application/stages/finality.test.ts"],
    [
      [
        "a tag of a branch that this node does not follow makes nothing final",
        "block !== null && context.follower.window.mayStandOn(block) ? block.number : null",
        "block !== null ? block.number : null",
      ],
      [
        "one endpoint's height ends no watch for reorgs",
        "const head = await unlessSilent(chain.heightReached(view.head), -1);",
        "const head = view.head;",
        ["test/application/endpoints/lying-heads.test.ts"],
      ],
      [
        "nothing is settled before its depth",
        "if (receipt === null || !isFinal(receipt.blockNumber, context.settings, view)) continue;",
        "if (receipt === null) continue;",
      ],
      [
        "a mined transaction is withdrawn when its block leaves the chain",
        'if (orphaned.length > 0) await withdraw(ports, lane, orphaned, "left the canonical chain");',
        "",
      ],
      [
        "a height without an answer withdraws nothing",
        "return canonical !== undefined && canonical !== stored;",
        "return canonical !== stored;",
      ],
      [
        "one endpoint alone withdraws no reported outcome",
        'if (opinion.kind === "none" || (opinion.kind === "agreed" && opinion.hash !== hash)) gone.push(hash);',
        "gone.push(hash);",
      ],
      [
        "a receipt that the endpoints deny is withdrawn",
        'if (absent.length > 0) await withdraw(ports, lane, absent, "does not hold it");',
        "",
      ],
      [
        "a reorg gives back what was counted as paid",
        "{ receipt: null, reason, paid: paidBefore(record) }",
        "{ receipt: null, reason }",
      ],
      [
        "a reported hash settles only at our nonce",
        'attempt?.kind === "external" || attempt?.foreign === true || attempt?.nodeSigned === true;',
        "false;",
        ["test/application/detours/node-hashes.test.ts"],
      ],
      [
        "a transaction without a verdict is not settled",
        'if (verdict?.kind === "unproven" || verdict?.kind === "agreed") settled.push(tx);',
        'if (verdict?.kind !== "absent") settled.push(tx);',
        ["test/application/endpoints/lying-receipts.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/7-complete/complete.ts",
    ["test/application/endpoints/lying-receipts.test.ts"],
    [
      [
        "the outcome rests on the corrected receipt",
        "const receipt = correction?.receipt ?? tx.receipt;",
        "const receipt = tx.receipt;",
      ],
      [
        "another program's transaction is not reported as confirmed",
        'if (mined?.isForeign) return "loseNonce";',
        "",
        ["test/application/stages/external-use.test.ts"],
      ],
      [
        "a reverted transaction is not reported as confirmed",
        'if (receipt?.status === "reverted") return "revert";',
        "",
        ["test/application/stages/finality.test.ts"],
      ],
      [
        "a mined cancel is not reported as the transaction",
        'if (mined?.kind === "cancel" || mined?.kind === "placeholder") return expired ? "confirmExpiry" : "confirmCancel";',
        "",
        ["test/application/operations/actions.test.ts"],
      ],
    ],
  ),
];
