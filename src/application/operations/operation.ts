import type { Limits } from "../../domain/keys/principal.ts";
import type { Lane } from "../../domain/lane.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

/** Something that only the owner of a lane can do; any node may be asked for it. */
export interface Operation<Ports, Body, Asked extends { readonly lane: Lane }, Done, Answer> {
  /**
   * The request, validated, with the lane that it is for. On the node that hears it: asked by a caller or by a peer.
   * `owner`: the name of the API key that the caller showed.
   */
  laneOf(ports: Ports, body: Body, owner: string | null): Asked | Promise<Asked>;
  /** As the owner is told, where the words depend on who hears them. */
  travels?(body: Body, asked: Asked): Body;
  /** True where it was done before, under the key of its order: then nobody is asked to do it. Throws where the key is another order's. */
  isDone?(ports: Ports, asked: Asked): Promise<boolean>;
  /** A repeat of the very same words is recognised, so that an owner may finish what the one before it began. Absent: it is not. */
  repeatable?(asked: Asked): boolean;
  /** By the owner, under its fence. What it returns must survive JSON: it may have to travel. */
  perform(ports: Ports, lane: OwnedLane, asked: Asked): Promise<Done>;
  /** Answer to the caller, read on the node that it asked. Absent: what `perform` returned. */
  answer?(ports: Ports, asked: Asked, done: Done): Answer | Promise<Answer>;
}

/** Makes an operation known to the other nodes by this name, and a call that any node may be asked for. */
export type Offer<Ports> = <Body extends object, Asked extends { readonly lane: Lane }, Done, Answer>(
  action: string,
  operation: Operation<Ports, Body, Asked, Done, Answer>,
) => (body: Body, owner?: string | null, limits?: Limits) => Promise<Answer>;

export interface OwnerPorts {
  readonly lanes: { own(lane: Lane): Promise<OwnedLane> };
}
