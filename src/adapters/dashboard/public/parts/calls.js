/** Decodes a payload's call if its selector (the first four bytes) belongs to a well-known function. */

/** @type {Readonly<Record<string, string>>} */
const KNOWN = {
  a9059cbb: "transfer(address to, uint256 amount)",
  "095ea7b3": "approve(address spender, uint256 amount)",
  "23b872dd": "transferFrom(address from, address to, uint256 amount)",
  "40c10f19": "mint(address to, uint256 amount)",
  a0712d68: "mint(uint256 amount)",
  "42966c68": "burn(uint256 amount)",
  "42842e0e": "safeTransferFrom(address from, address to, uint256 tokenId)",
  a22cb465: "setApprovalForAll(address operator, bool approved)",
  d0e30db0: "deposit()",
  "2e1a7d4d": "withdraw(uint256 amount)",
  "3ccfd60b": "withdraw()",
  f2fde38b: "transferOwnership(address newOwner)",
  "8456cb59": "pause()",
  "3f4ba83a": "unpause()",
};

const WORD = 64;

/** @typedef {{ readonly name: string, readonly args: readonly { readonly name: string, readonly value: string }[] }} DecodedCall */

/**
 * Decodes call data to `{ name, args: [{ name, value }] }`; null if the data does not match a known function
 * exactly.
 *
 * @param {string} data
 * @returns {DecodedCall | null}
 */
export function decodedCall(data) {
  const signature = KNOWN[data.slice(2, 10)];
  if (signature === undefined) return null;
  const [, name = "", list = ""] = /^(\w+)\((.*)\)$/.exec(signature) ?? [];
  const parameters = list === "" ? [] : list.split(", ").map((each) => each.split(" "));
  const words = data.slice(10).match(/.{64}/g) ?? [];
  if (data.length !== 10 + parameters.length * WORD) return null;
  const args = parameters.flatMap(([type = "", parameter = ""], index) => {
    const value = argumentOf(type, words[index] ?? "");
    return value === null ? [] : [{ name: parameter, value }];
  });
  return args.length < parameters.length ? null : { name, args };
}

/**
 * Decodes one 32-byte word as `type`; null if it is not a valid value, which means that the data belongs to another
 * function.
 *
 * @param {string} type
 * @param {string} word
 */
function argumentOf(type, word) {
  if (type === "uint256") return BigInt(`0x${word}`).toString();
  if (type === "bool") return /^0{63}[01]$/.test(word) ? String(word.endsWith("1")) : null;
  return /^0{24}/.test(word) ? `0x${word.slice(24)}` : null;
}
