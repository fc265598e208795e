import { LaneOrder, RealignOrder } from "../schemas/actions.ts";
import { SignerLanes, SignerNames, SignerQuery, SignersPage, SignersQuery } from "../schemas/signers.ts";
import { ACTION_HEADERS, type ActionCall, declared, OPERATE, ok, READ, TRANSACTION_BYTES } from "./call.ts";

export const signers = declared({
  listSigners: {
    at: "get /api/v1/signers",
    scope: READ,
    face: "signersPage",
    does: "signers",
    summary: "List every signer's lanes",
    query: SignersQuery,
    answers: ok("Also those never used.", SignersPage),
  },
  getSigner: {
    at: "get /api/v1/signers/{signer}",
    scope: READ,
    face: "signer",
    summary: "Read one signer's lanes",
    query: SignerQuery,
    answers: ok("One item per chain.", SignerLanes),
    errors: ["UNKNOWN_SIGNER"],
  },
  listSignerNames: {
    at: "get /api/v1/signer-names",
    scope: READ,
    face: "namedSigners",
    summary: "List the names of signers",
    answers: ok("As the node that answers is configured.", SignerNames),
  },
});

/** Declares an operator's action on a lane as a whole. */
function action<const A extends string>(name: A, { errors = [], ...own }: ActionCall) {
  return {
    at: `post /api/v1/signers/{signer}/${name}` as `post /api/v1/signers/{signer}/${A}`,
    scope: OPERATE,
    by: "owner",
    face: name,
    does: "actOnLane",
    action: name,
    bodyBytes: TRANSACTION_BYTES,
    headers: ACTION_HEADERS,
    answers: ok("The lane.", SignerLanes),
    errors: ["NOT_LEADER", "REQUEST_ID_REUSED", "UNKNOWN_SIGNER", "UNKNOWN_CHAIN", ...errors],
    ...own,
  } as const;
}

export const laneActions = declared({
  suspendSigner: action("suspend", {
    summary: "Send nothing more from this signer",
    description: "Creates are accepted and wait. Answers once the sends that were out have ended; outlives the node.",
    body: LaneOrder,
  }),
  resumeSigner: action("resume", {
    summary: "Send again",
    description: "What waited goes out in nonce order.",
    body: LaneOrder,
  }),
  realignSigner: action("realign", {
    summary: "Lower a cursor that was pushed too far",
    description:
      "After an endpoint lied about the signer's count. Never below what the chain counts, mined or pending, nor below a nonce that may have left: the answer shows how far it went.",
    body: RealignOrder,
    errors: ["CONFLICT"],
  }),
});
