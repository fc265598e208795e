import { mutantsIn } from "../mutant.ts";

export const FEES = [
  ...mutantsIn(
    "src/domain/fees/ceilings.ts",
    [
      "test/domain/fees/ceilings.test.ts",
      "test/domain/policy/usage.property.test.ts",
      "test/application/fees/ceilings.test.ts",
      "test/application/authority/policies.test.ts",
    ],
    [
      [
        "a gas cost over its ceiling lowers the fee",
        "if (byGasCost < limit.most) limit =",
        "if (false) limit =",
        ["test/domain/fees/ceilings.test.ts"],
      ],
      ["a cost over its ceiling lowers the fee", "byCost !== null && byCost < limit.most", "false"],
      [
        "blobs count towards the gas cost",
        "shared(gasCost - blobCost, gas)",
        "shared(gasCost, gas)",
        ["test/domain/fees/ceilings.test.ts"],
      ],
      ["value counts towards the cost", "shared(cost - value - blobCost, gas)", "shared(cost - blobCost, gas)"],
      [
        "blobs count towards the cost",
        "shared(cost - value - blobCost, gas)",
        "shared(cost - value, gas)",
        ["test/domain/fees/ceilings.test.ts"],
      ],
      [
        "a repriced fee is at most five times the first",
        "if (ceilings.isFeeSet || grown >= limit.most) return limit;",
        "return limit;",
      ],
      ["a fee ceiling that an operator set replaces five times the first", "ceilings.isFeeSet || grown", "grown"],
      [
        "a price above the ceiling is lowered",
        "fees: under(wanted, larger(limit.most, 0n))",
        "fees: wanted",
        ["test/domain/fees/ceilings.test.ts"],
      ],
      [
        "a fee that the caller named is refused above the ceiling",
        "if (cap > limit.most) throw overCeiling",
        "if (false) throw overCeiling",
      ],
      [
        "a tip above the ceiling is refused too",
        "[gasPrice, maxFeePerGas, maxPriorityFeePerGas].reduce(larger)",
        "[gasPrice, maxFeePerGas].reduce(larger)",
      ],
      ["the worst cost is at most the ceiling of gas", "value + smaller(byPrice, gasCost)", "value + byPrice"],
      [
        "the worst cost is at most the ceiling of cost",
        "cost !== null && cost < most && cost >= value ? cost : most",
        "most",
        ["test/domain/fees/ceilings.test.ts"],
      ],
      ["a ceiling below the value leaves no fee", "amount < 0n ? -1n :", ""],
    ],
  ),
  ...mutantsIn(
    "src/domain/fees/climbing.ts",
    ["test/domain/fees/climbing.test.ts"],
    [
      ["a step doubles the base fee at most", "smaller(dearer.baseFee, 2n * baseFee)", "dearer.baseFee"],
      ["a step doubles the tip at most", "smaller(dearer.tip, 2n * tip + room)", "dearer.tip"],
      ["a step doubles the gas price at most", "smaller(dearer.gasPrice, 2n * gasPrice)", "dearer.gasPrice"],
      ["a step that is offered already is not offered again", "!covers(standing, fees)", "true"],
      [
        "the second step lies between the others",
        "return smaller(larger(root, low), larger(low, high));",
        "return low;",
      ],
      ["a tip has room while base fees are alike", "dearer.baseFee > baseFee ? 0n : baseFee", "0n"],
    ],
  ),
  ...mutantsIn(
    "src/domain/fees/repricing.ts",
    ["test/domain/fees/repricing.test.ts", "test/domain/fees/replacement.test.ts", "test/domain/fees/climbing.test.ts"],
    [
      [
        "a replacement is at least ten percent dearer",
        "const REPLACEMENT_PERCENT = 10n;",
        "const REPLACEMENT_PERCENT = 9n;",
      ],
      ["a price that was refused grows by a quarter", "const REFUSED_PERCENT = 25n;", "const REFUSED_PERCENT = 10n;"],
      [
        "a replacement is rounded up",
        "(value * (100n + percent) + 99n) / 100n",
        "(value * (100n + percent)) / 100n",
        ["test/domain/fees/repricing.test.ts"],
      ],
      ["a replacement of a tiny price is dearer", "99n) / 100n, value + 1n)", "99n) / 100n, value)"],
      [
        "a replacement raises cap and tip",
        "feeCap(fees) >= feeCap(demanded) && tipOf(fees) >= tipOf(demanded)",
        "feeCap(fees) >= feeCap(demanded)",
        ["test/domain/fees/repricing.test.ts"],
      ],
      [
        "a blob transaction is replaced at twice its price",
        "(value) => value * 2n), blobFeeCap: blobFeeCap * 2n",
        "(value) => value), blobFeeCap: blobFeeCap * 2n",
        ["test/domain/fees/replacement.test.ts"],
      ],
      [
        "a blob transaction is replaced at twice its blob price",
        "blobFeeCap: blobFeeCap * 2n",
        "blobFeeCap",
        ["test/domain/fees/replacement.test.ts"],
      ],
      [
        "a blob transaction is not replaced by one without blobs",
        "if (isBlob !== (least.blobFeeCap !== undefined)) return false;",
        "",
      ],
      [
        "blobs too have a least price",
        " && (offered.blobFeeCap ?? 0n) >= (least.blobFeeCap ?? 0n)",
        "",
        ["test/domain/fees/replacement.test.ts"],
      ],
      [
        "a transaction at the market is not repriced",
        "isBelowMarket(view.standing, view.market) ? wanted : null",
        "wanted",
      ],
      [
        "a refused price ends above the market",
        "higher(scale(view.standing, REFUSED_PERCENT), wanted)",
        "scale(view.standing, REFUSED_PERCENT)",
      ],
      [
        "a strategy that fails is replaced by the market's",
        "failed(messageOf(error));",
        "failed(messageOf(error)); return null;",
        ["test/domain/fees/repricing.test.ts"],
      ],
      ["a strategy proposes no negative fee", " && fee >= 0n", ""],
      ["a linear strategy grows with each attempt", "step * BigInt(attempts)", "step"],
      ["a legacy price covers base fee and tip", "larger(gasPrice, baseFee + tip)", "gasPrice"],
      [
        "an advised tip is no higher than its cap",
        "smaller(tip, offer.maxFeePerGas)",
        "tip",
        ["test/domain/fees/repricing.test.ts"],
      ],
      [
        "a fee is below the market if what is left for the tip is",
        "room < 0n || smaller(tipOf(fees), room) < tipTaken(market)",
        "room < 0n || tipOf(fees) < tipTaken(market)",
      ],
    ],
  ),
  ...mutantsIn(
    "src/domain/fees/two-markets.ts",
    ["test/domain/fees/two-markets.test.ts"],
    [
      [
        "markets that differ by more than a factor contradict each other",
        "if (larger(...prices) <= smaller(...prices) * CONTRADICTION_FACTOR) return [];",
        "return [];",
      ],
      [
        "one endpoint's base fee raises no price",
        "one === null || other === null ? null : smaller(one, other)",
        "one === null || other === null ? null : larger(one, other)",
      ],
      [
        "a base fee that one endpoint shows is not that of a header that both have",
        'shared === "none" ? [a.baseFee, b.baseFee] : [shared.baseFee, shared.baseFee]',
        "[a.baseFee, b.baseFee]",
      ],
      ["a market is dearer only beyond an eighth", "high * 8n > low * 9n", "high > low"],
      ["the lower tips are taken", "tipFor(a) <= tipFor(b) ? [a, b] : [b, a]", "[a, b]"],
      ["the last tips are not above what the other market takes", "smaller(tip, most)", "tip"],
    ],
  ),
  ...mutantsIn(
    "src/domain/fees/action-price.ts",
    ["test/domain/fees/action-price.test.ts"],
    [
      [
        "an action doubles the tip at most by what it offers",
        "smaller(larger(tipFor(market), tipTaken(market)), relative)",
        "larger(tipFor(market), tipTaken(market))",
      ],
      ["a base fee that doubled at once is not believed", "now <= newest * 2n", "true"],
      ["a fixed offer is followed to its price", "if (!offer.isFixed) return higher", "if (true) return higher"],
      ["a transaction is short below base fee and tip", "feeCap(standing) < price", "feeCap(standing) <= price"],
    ],
  ),
  ...mutantsIn(
    "src/domain/fees/gas.ts",
    ["test/domain/fees/gas.test.ts"],
    [
      ["an estimate gets a margin of a fifth", "const padded = estimate + estimate / 5n;", "const padded = estimate;"],
      [
        "a margin does not exceed the block",
        "most !== null && padded > most && estimate <= most ? most : padded",
        "padded",
      ],
      [
        "a plain transfer gets no margin",
        "&& estimate <= PLAIN_TRANSFER_GAS) return estimate;",
        "&& false) return estimate;",
      ],
      ["a deployment costs more", "if (payload.to === null) gas += 32_000", "if (false) gas += 32_000"],
      [
        "the lower of two gas limits holds",
        "block === null || transaction < block",
        "block === null",
        ["test/domain/gas-limits.test.ts"],
      ],
      ["gas at the limit is allowed", "gas <= limit.gas", "gas < limit.gas", ["test/domain/gas-limits.test.ts"]],
      ["a precompile is no plain receiver", " || isReserved(to)", "", ["test/domain/gas-limits.test.ts"]],
    ],
  ),
  ...mutantsIn(
    "src/domain/transaction/fees.ts",
    ["test/domain/transaction/fees.test.ts", "test/domain/fees/repricing.test.ts", "test/domain/fees/ceilings.test.ts"],
    [
      [
        "the newest base fees count, the higher of two",
        "a === undefined || b === undefined ? undefined : larger(a, b)",
        "b",
        ["test/domain/transaction/fees.test.ts"],
      ],
      [
        "a tip is no higher than its cap",
        "wishes.maxPriorityFeePerGas ?? smaller(tip, maxFeePerGas)",
        "wishes.maxPriorityFeePerGas ?? tip",
      ],
      [
        "a tip that the caller named raises the cap",
        "larger(maxFeePerGas, maxPriorityFeePerGas), maxPriorityFeePerGas",
        "maxFeePerGas, maxPriorityFeePerGas",
      ],
      [
        "a price is sane against the last hundred blocks",
        "capped(price, digest(market).sanityLimit, ceiling)",
        "capped(price, ceiling)",
      ],
      [
        "a price is at most the ceiling",
        "capped(price, digest(market).sanityLimit, ceiling)",
        "capped(price, digest(market).sanityLimit)",
      ],
      [
        "a lowered fee lowers its tip",
        "feesLike(fees, cap, smaller(tip, cap))",
        "feesLike(fees, cap, tip)",
        ["test/domain/fees/repricing.test.ts"],
      ],
      ["an access list needs its own envelope", 'accessList.length > 0 ? { ...fees, type: "eip2930" } : fees', "fees"],
      [
        "a cap below half of the base fee is hopeless",
        "cap * 2n < baseFee",
        "cap < baseFee",
        ["test/domain/transaction/fees.test.ts"],
      ],
      [
        "a median is of sorted values",
        ".sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))",
        "",
        ["test/domain/transaction/fees.test.ts"],
      ],
    ],
  ),
];
