/**
 * Mutants that no test can find, because they change nothing: the code, its replacement, and the reason. A row whose mutant
 * is found or gone fails the run. Before adding one, try to write the code so that the mutant cannot exist.
 */
export const EQUIVALENT = [
  {
    file: "src/domain/ledger/fold.ts",
    code: "requestId !== null",
    becomes: "true",
    because: "nothing has the request id null",
  },
  {
    file: "src/domain/ledger/fold.ts",
    code: "requestId === null",
    becomes: "false",
    because: "nothing has the request id null",
  },
  {
    file: "src/domain/ledger/bind.ts",
    code: "reservation === null",
    becomes: "false",
    because: "the compiler cannot know that a reserved nonce has a reservation",
  },
  {
    file: "src/domain/ledger/bind.ts",
    code: 'kind === "placeholder"',
    becomes: "true",
    because: "policies treat all kinds alike that are neither a payload nor a placeholder",
  },
  {
    file: "src/domain/ledger/bind.ts",
    code: "decision === undefined",
    becomes: "false",
    because: "a decision that is undefined and one that is absent are the same",
  },
  {
    file: "src/domain/ledger/move.ts",
    code: "nonce === null",
    becomes: "false",
    because: "another program's transaction is found at the nonce of a transaction that has one",
  },
  {
    file: "src/domain/ledger/move.ts",
    code: "nonce === null",
    becomes: "false",
    because: "the compiler cannot know that a live transaction has a nonce",
  },
  {
    file: "src/domain/ledger/move.ts",
    code: "item.nonce < nonce",
    becomes: "item.nonce <= nonce",
    because: "the transaction itself is at its nonce, so there is no hole",
  },
];
