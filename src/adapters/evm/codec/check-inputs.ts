const TYPE = /^(address|bool|string|bytes\d{0,2}|u?int\d{0,3}|tuple|function)(\[([1-9]\d{0,3})?\])*$/;
const DEEPEST_TUPLE = 16;

/**
 * Checks the parameters of an ABI's entry, and the members of their tuples, before data is decoded by them. viem's
 * decoder takes long for tuples that are nested deeply. A tuple without members, or a list of no entries, takes no bytes.
 * So no data ends a list of them: its length, which the data chooses, would keep the decoder busy for ever.
 */
export function checkInputs(inputs: readonly unknown[], depth = 0): void {
  if (depth > DEEPEST_TUPLE) throw new Error("tuples are nested too deeply");
  for (const input of inputs) {
    const { type, name, components } = Object(input) as Readonly<Record<string, unknown>>;
    if (typeof type !== "string" || !TYPE.test(type)) throw new Error("a parameter has an unknown type");
    if (name !== undefined && typeof name !== "string") throw new Error("the name of a parameter must be text");
    if (!type.startsWith("tuple")) continue;
    if (!Array.isArray(components) || components.length === 0) throw new Error("a tuple needs its components");
    checkInputs(components, depth + 1);
  }
}
