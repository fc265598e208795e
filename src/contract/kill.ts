import { type Static, Type } from "typebox";
import { Address } from "./scalars.ts";
import { named, nullable } from "./shapes.ts";

export const KillOrder = named("KillOrder", {
  reason: Type.Optional(Type.String({ maxLength: 1_000, description: "Why; kept for the audit." })),
});
export type KillOrder = Static<typeof KillOrder>;

export const KillSwitchState = named("KillSwitchState", {
  durable: Type.Boolean({
    description: "Every order in force is written down and outlives the node. False: that is tried until it is.",
  }),
  kills: Type.Array(
    Type.Object({
      killId: Type.String(),
      signer: nullable(Address),
      actor: Type.String(),
      reason: Type.String(),
    }),
    { description: "The orders in force, as the node that was asked knows them; `signer` null is everything." },
  ),
  nodes: Type.Array(Type.Object({ nodeId: Type.String(), url: Type.String(), told: Type.Boolean() }), {
    description:
      "After an order: the other nodes, and whether each has said within the time of the answer that it holds to it.",
  }),
});
export type KillSwitchState = Static<typeof KillSwitchState>;
