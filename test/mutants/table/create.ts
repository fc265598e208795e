import { mutantsIn } from "../mutant.ts";

export const CREATE = [
  ...mutantsIn(
    "src/application/stages/1-create/create.ts",
    ["test/application/stages/1-create/create.test.ts"],
    [
      [
        "a node that shuts down alone refuses its callers' creates",
        "if (turnedAway !== null) return Promise.resolve(asked.map(() => turnedAway));",
        "",
        ["test/application/lifecycle/node.test.ts"],
      ],
      [
        "a create whose nonce has the same transaction already is its repeat",
        'if (inlet === "caller") await answerHeldNonces(ports, items);',
        "",
        ["test/application/json-rpc/repeats.test.ts"],
      ],
      [
        "a refusal lets another node ask elsewhere",
        "each instanceof BetweenOwners ? each.toPeer() : each",
        "each",
        ["test/application/cluster/forwarding.test.ts"],
      ],
      ["a forwarded create names its chain", "request: { ...request, chainId: lane.chainId } };", "request };"],
      [
        "a forwarded create names the signer that its pool chose",
        "const chosen = pool === undefined ? {} : { chosen: lane.signer };",
        "const chosen = {};",
        ["test/application/nonces/pools.test.ts"],
      ],
      [
        "a forwarded create carries the queue share of its key",
        "...(queueShare === null ? {} : { queueShare })",
        "...{}",
        ["test/application/authority/queue-shares.test.ts"],
      ],
      [
        "a repeat is answered before it is enqueued",
        "const unseen = await answerExisting(ports, open);",
        "const unseen = open;",
        ["test/application/cluster/waiting-creates-crash.test.ts"],
      ],
      ["creates beyond the places in the queue are refused", "return items.slice(0, room);", "return items;"],
      [
        "the queue of a lane is limited",
        "Math.min(admission.perLane - lane.creating, admission.perNode - admission.underWay)",
        "admission.perNode - admission.underWay",
      ],
      [
        "the queue of a node is limited",
        "Math.min(admission.perLane - lane.creating, admission.perNode - admission.underWay)",
        "admission.perLane - lane.creating",
      ],
      [
        "a place in the lane's queue is free once its create is answered",
        'lane.count("creating", -admitted.length);',
        "",
      ],
      ["a place in the node's queue is free once its create is answered", "admission.underWay -= admitted.length;", ""],
      [
        "a failed create leaves its place in its key's share",
        "share.leave();",
        "",
        ["test/application/authority/queue-shares.test.ts"],
      ],
      [
        "a repeat is answered though its key's share is full",
        "if (share.refused.length > 0) await answerExisting(ports, share.refused);",
        "",
        ["test/application/authority/queue-shares.test.ts"],
      ],
      [
        "a known request id is answered without a call to the chain",
        "costly || ports.requestIds.isAsking(lane.lane) ? answerExisting(ports, items) : items",
        "items",
      ],
      [
        "a create overtakes no other whose request id is being looked up",
        "costly || ports.requestIds.isAsking(lane.lane) ? answerExisting(ports, items) : items",
        "costly ? answerExisting(ports, items) : items",
      ],
      [
        "a create behind others of its batch depends on them",
        "const standing = { behindPending: position > 0 || behindOthers, laneKnown };",
        "const standing = { behindPending: behindOthers, laneKnown };",
      ],
      [
        "a create behind others of its lane depends on them",
        "const standing = { behindPending: position > 0 || behindOthers, laneKnown };",
        "const standing = { behindPending: position > 0, laneKnown };",
      ],
      [
        "an existing transaction takes precedence over a refusal",
        "if (refused.length === 0) return items;\n  await answerExisting(ports, refused);",
        "if (refused.length === 0) return items;",
      ],
      [
        "a create that its own earlier send made is answered as created",
        "if (result.existing.txId === intent.txId) return createdAs(intent, result.existing);",
        "",
      ],
      [
        "a create whose owner did not answer has an unknown outcome",
        "return outcomeUnknown(detail, { txId });",
        "return unavailable(detail);",
        ["test/application/cluster/forwarding.test.ts"],
      ],
      [
        "a lane's failed creates do not fail the answered ones",
        "item.result ??= failureOf(error, item.intent.txId);",
        "item.result = failureOf(error, item.intent.txId);",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/1-create/asked-create.ts",
    ["test/application/stages/1-create/dequeued-creates.test.ts"],
    [
      [
        "a create that another node forwarded chooses no other member of its pool",
        'if (inlet !== "caller" || pool === null) {',
        "if (pool === null) {",
        ["test/application/stages/1-create/create.test.ts"],
      ],
      [
        "a key that is limited to a pool's signers may use the pool",
        "{ limits: { ...limits, signers: null } }",
        "{ limits }",
        ["test/application/nonces/pools.test.ts"],
      ],
      [
        "an enqueued create for another lane than its row's is refused",
        "if (laneKey(named as Lane) !== laneKey(lane))",
        "if (false)",
      ],
      ["creates of a lane that was lost are left to its next owner", "refuseLost(results);\n", ""],
      [
        "a lane that was lost half-way leaves its creates in doubt",
        "const isNothingDone = lost.length === results.length && lost.every(({ extras }) => extras.outcome === undefined);",
        "const isNothingDone = true;",
      ],
      [
        "a trace context that the caller set is kept",
        " || traceparentIn(metadata) !== null) return request;",
        ") return request;",
        ["test/adapters/telemetry/tracing.test.ts"],
      ],
      [
        "a trace context makes no metadata too large",
        "return hasRoom(metadata) ? {",
        "return true ? {",
        ["test/adapters/telemetry/tracing.test.ts"],
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/1-create/answer-existing.ts",
    ["test/application/stages/1-create/create.test.ts"],
    [
      [
        "a request id shows no transaction of another key",
        "if (isAnothers(existing.owner, asked.owner)) return anothersRequestId(existing.requestId);",
        "",
        ["test/application/authority/key-limits.test.ts"],
      ],
      [
        "a request id with another payload is refused",
        "return samePayload ? existingAs(existing) : reusedRequestId(existing);",
        "return existingAs(existing);",
      ],
      [
        "a nonce shows no transaction of another key",
        "if (found === null || isAnothers(found.owner, owner)) return;",
        "if (found === null) return;",
      ],
      [
        "another payload at the named nonce is no repeat",
        "if (fingerprint(found.payload, found) === item.intent.fingerprint) item.result = existingAs(found);",
        "item.result = existingAs(found);",
        ["test/application/json-rpc/repeats.test.ts"],
      ],
      [
        "request ids of a lane are answered in the order of their creates",
        "await before?.catch(() => undefined);",
        "",
        ["test/application/stages/1-create/request-ids.test.ts"],
      ],
      [
        "a look-up of request ids has a largest size",
        "this.next === null || this.next.size >= ENOUGH",
        "this.next === null",
        ["test/application/stages/1-create/request-ids.test.ts"],
      ],
      [
        "a look-up that failed delays no later one of its lane",
        "await before?.catch(() => undefined);",
        "await before;",
        ["test/application/stages/1-create/request-ids.test.ts"],
      ],
      [
        "a create whose commit got no answer has an unknown outcome",
        "if (error instanceof OutcomeUnknown) return outcomeUnknown(UNANSWERED, { txId, cause: error });",
        "",
        ["test/application/faults/store-faults.test.ts"],
      ],
      [
        "a create that the database cannot store is refused for good",
        "return error instanceof BatchRefused ? unstorable() : new DatabaseSilent(",
        "return new DatabaseSilent(",
      ],
      [
        "a key fills no more than its share of the queue",
        "if (share.size >= most) item.result = shareFull(most);",
        "if (false) item.result = shareFull(most);",
        ["test/application/authority/queue-shares.test.ts"],
      ],
      [
        "the smallest share is one create",
        "Math.max(1, Math.floor(queueShare * admission.perLane))",
        "Math.floor(queueShare * admission.perLane)",
      ],
      [
        "a create that got its nonce keeps its place in the share",
        "if (!hasNonce(result, intent)) shares",
        "shares",
        ["test/application/authority/queue-shares.test.ts"],
      ],
      [
        "a create that waits for approval has no place in the share",
        "result.txId === txId && result.nonce !== null;",
        "result.txId === txId;",
        ["test/application/authority/queue-shares.test.ts"],
      ],
      [
        "a repeat takes no second place in the share",
        "result.txId === txId && result.nonce !== null;",
        "result.nonce !== null;",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/1-create/prepare.ts",
    ["test/application/stages/1-create/prepare.test.ts"],
    [
      [
        "a hopeless fee is refused before it gets a nonce",
        "if (context.reachable) refuseHopelessFee(shown, payload);",
        "",
      ],
      [
        "the first create of a lane is simulated",
        "if (payload.gas === undefined || !behindPending) return null;",
        "if (payload.gas === undefined) return null;",
      ],
      [
        "a create is accepted while the chain is silent only if the lane's nonce is known",
        "if (isComplete(intent) && laneKnown) return",
        "if (isComplete(intent)) return",
      ],
      [
        "a call that fails in the simulation is refused",
        'if (simulation.outcome !== "ok") throw refusal(simulation, behindPending);',
        "",
      ],
      ["a create that the signer cannot pay for is refused", "if (needed > simulation.balance) {", "if (false) {"],
      [
        "the value counts towards what the signer must have",
        "const needed = payload.value + gas * cap;",
        "const needed = gas * cap;",
      ],
      [
        "a refusal behind pending transactions is marked as one",
        "const extras = { reason: REASONS[why.outcome], ...(dependsOnPending ? { dependsOnPending } : {}) };",
        "const extras = { reason: REASONS[why.outcome] };",
      ],
      [
        "call data for an address without code is refused",
        "intent.allowNoCode === true ? said : await ranByCode(",
        "true ? said : await ranByCode(",
        ["test/application/stages/1-create/no-code.test.ts"],
      ],
      [
        "code that a pending transaction may deploy is not missing yet",
        'if (behindPending) throw refusal({ outcome: "gasTooLow", detail: notDeployedYet(call) }, true);',
        "",
        ["test/application/stages/1-create/no-code.test.ts"],
      ],
      [
        "one endpoint's estimate is confirmed",
        "if (estimated !== null) await confirmEstimate(",
        "if (false) await confirmEstimate(",
      ],
      ["gas below the intrinsic gas is refused", "if (payload.gas < least) {", "if (false) {"],
      [
        "gas above the chain's limit is refused",
        'if (detail !== null) throw refusal({ outcome: "gasOverBlock", detail }, false);',
        "",
      ],
      [
        "gas that no chain runs is refused in a transaction that its caller signed",
        "refuseImpossibleGas(context, payload);\n  if (context.reachable)",
        "if (context.reachable)",
      ],
      [
        "one endpoint's base fee refuses no create",
        "baseFeePerGas: leastBaseFee, mostGas",
        "baseFeePerGas: head?.baseFeePerGas ?? null, mostGas",
      ],
    ],
  ),
  ...mutantsIn(
    "src/application/stages/1-create/pools.ts",
    ["test/application/nonces/pools.test.ts"],
    [
      [
        "a request id of the pool is answered with its transaction",
        "if (found !== null) item.result = repeated(found, intent, limits);\n      else if",
        "if",
      ],
      [
        "a request that a member cannot pay for is tried at another",
        "open = tries < MOST_TRIES ? pooled.filter(mayTryAnother) : [];",
        "open = [];",
      ],
      [
        "a key that is limited to some of a pool's signers may not use the pool",
        "if (limits !== undefined) refusePool(limits, pool.asked.pool, lanes);",
        "",
      ],
      [
        "a repeat that was accepted meanwhile takes precedence over a refusal",
        "await Promise.all(pooled.map((item) => this.findMeanwhile(item)));",
        "",
      ],
      [
        "balances are read again before a pool refuses for lack of funds",
        'if (choice.kind === "refused" && choice.why === "funds") {',
        "if (false) {",
      ],
      [
        "simultaneous requests do not all choose the same member",
        "members.choose({ chainId, signer: choice.signer });",
        "",
      ],
      ["a request id that one lane of the pool has is a repeat", "?? direct ?? null;", "?? null;"],
    ],
  ),
];
