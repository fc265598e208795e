import type { AbiStore } from "./abi-store.ts";
import type { Clock } from "./clock.ts";
import type { Codec } from "./codec.ts";
import type { Entropy } from "./entropy.ts";
import type { Failpoints } from "./failpoints.ts";
import type { FigureStore } from "./figure-store.ts";
import type { KeyStore } from "./key-store.ts";
import type { KillStore } from "./kill-store.ts";
import type { LaneStore } from "./lane-store.ts";
import type { LeaseStore } from "./lease-store.ts";
import type { LeftRequestStore } from "./left-request-store.ts";
import type { NoticeStore } from "./notice-store.ts";
import type { Peers } from "./peers.ts";
import type { PolicyStore } from "./policy-store.ts";
import type { QueryStore } from "./query-store.ts";
import type { Secrets } from "./secrets.ts";
import type { SessionLock } from "./session-lock.ts";
import type { SightStore } from "./sight-store.ts";
import type { Signer } from "./signer.ts";
import type { SubscriberStore } from "./subscriber-store.ts";
import type { Telemetry } from "./telemetry.ts";
import type { WakeUps } from "./wake-ups.ts";

/** The ports of the application, by name; each part of the application picks those that it needs. */
export interface Ports {
  readonly store: LeaseStore &
    LaneStore &
    QueryStore &
    SightStore &
    FigureStore &
    AbiStore &
    KeyStore &
    KillStore &
    NoticeStore &
    LeftRequestStore &
    PolicyStore &
    SubscriberStore;
  readonly signer: Signer;
  readonly peers: Peers;
  readonly wakeUps: WakeUps;
  readonly sessionLock: SessionLock;
  readonly codec: Codec;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly secrets: Secrets;
  readonly telemetry: Telemetry;
  readonly failpoint: Failpoints;
}
