import { mutantsIn } from "../mutant.ts";

const RULES = ["test/domain/cluster/lane-move.test.ts"];
const CONTRACT = ["test/doubles/memory-store.test.ts"];
const OPERATION = ["test/application/operations/lane-moves.test.ts"];
const FLEET = ["test/fleet/fleet.test.ts"];

export const CELLS = [
  ...mutantsIn("src/domain/cluster/lane-move.ts", RULES, [
    [
      "a cell that serves a signer expects it from nowhere",
      'if (standing.place === "HERE" && hasServed(standing, used))',
      "if (false)",
      CONTRACT,
    ],
    [
      "a cell that never had a signer is not the one that it leaves",
      "if (!hasServed(standing, used)) throw refused",
      "if (false) throw refused",
    ],
    ["a signer leaves once nothing is open", 'isNothing(open) ? "LEFT" : "LEAVING"', '"LEFT"', CONTRACT],
    [
      "a signer that has left is not called back",
      'if (standing.place === "LEAVING" && standing.leftBy === moveId) return',
      "if (standing.leftBy === moveId) return",
    ],
    [
      "a page opens no cell but the one that expects it",
      'if (arrivesBy !== step.moveId || (place !== "EXPECTED" && place !== "HERE"))',
      "if (false)",
    ],
    ["pages are taken over in order", 'place === "HERE" || step.after !== carried', 'place === "HERE"', CONTRACT],
    [
      "a signer comes from the same chain",
      "if (step.genesisHash !== null && genesisHash !== null && step.genesisHash !== genesisHash)",
      "if (false)",
      CONTRACT,
    ],
  ]),
  ...mutantsIn("src/domain/ledger/allocate.ts", CONTRACT, [
    [
      "a signer that is elsewhere gets no nonce here",
      'if (isAway(draft.ledger, item)) return { result: "moved", place: draft.ledger.place };',
      "",
    ],
    [
      "a signer that is leaving serves what it has accepted",
      "return intakeId === undefined ? isMoving(ledger) : isElsewhere(ledger);",
      "return isMoving(ledger);",
    ],
  ]),
  ...mutantsIn("src/domain/ledger/reserve.ts", CONTRACT, [
    [
      "a signer that is moving has no nonce to reserve",
      'if (isMoving(draft.ledger)) return { result: "moved", place: draft.ledger.place };',
      "",
    ],
  ]),
  ...mutantsIn("src/domain/ledger/standing.ts", CONTRACT, [
    [
      "the next nonce of a signer that has left is frozen",
      "if (isElsewhere(draft.ledger)) return cursor ?? floor;",
      "",
    ],
  ]),
  ...mutantsIn("src/application/stages/1-create/answer-existing.ts", OPERATION, [
    ["a create is refused as moved under a proved term alone", "await owned.term.prove();", ""],
  ]),
  ...mutantsIn("src/application/stages/2-allocate/allocate.ts", OPERATION, [
    ["a count above the next nonce is reported under a proved term alone", "await work.lane.term.prove();", ""],
  ]),
  ...mutantsIn("src/application/detours/reconcile.ts", OPERATION, [
    [
      "another cell's transactions are not taken for another program's",
      'if (isElsewhere(lane.ledger)) return "agreed";',
      "",
    ],
  ]),
  ...mutantsIn("src/application/detours/intake.ts", OPERATION, [
    [
      "an intent that comes after its signer has left ends",
      'if (result.result === "moved") return [refusal(intakeId, signerMoved(result.place))];',
      "",
    ],
  ]),
  ...mutantsIn("src/fleet/directory.ts", FLEET, [
    ["a signer in two cells is refused", "if (others.length > 0)", "if (false)"],
  ]),
  ...mutantsIn("src/fleet/index.ts", FLEET, [
    ["a signer that moved is looked for again", "this.directory.forget(named);", ""],
    [
      "a request id of the former cell is answered there",
      "if (isSpent(error)) return this.askFormer(named, work, error, { signal, timeoutMs: leftMs() });",
      "",
    ],
  ]),
];
