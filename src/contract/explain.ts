import { type Static, Type } from "typebox";
import { CAUSE_CODES, HELP_CODES } from "../domain/explain/situation.ts";
import { Nonce, oneOf, Timestamp, TxId } from "./scalars.ts";

export const Explanation = Type.Object(
  {
    summary: Type.String({ description: "One sentence for a person." }),
    causes: Type.Array(
      Type.Object({
        code: oneOf(CAUSE_CODES),
        text: Type.String(),
        since: Type.Optional(Timestamp),
        data: Type.Optional(
          Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Null()]), {
            description: "The figures of the text; wei as decimal strings.",
          }),
        ),
      }),
      { description: "Most telling first." },
    ),
    blockedBy: Type.Optional(Type.Object({ txId: TxId, nonce: Nonce })),
    help: Type.Array(Type.Object({ code: oneOf(HELP_CODES), text: Type.String() })),
  },
  { title: "Explanation" },
);
export type Explanation = Static<typeof Explanation>;
