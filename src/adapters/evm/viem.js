// The functions of viem that Fencepost uses. `npm run build` replaces the compiled copy of this file by a bundle of them
// (scripts/build.mjs), so that who installs Fencepost does not install viem and ox, which are 72 MB.
export { english, HDKey, mnemonicToAccount, privateKeyToAddress, sign } from "viem/accounts";
export {
  concatHex,
  decodeErrorResult,
  encodeAbiParameters,
  getAddress,
  getContractAddress,
  keccak256,
  numberToHex,
  parseAbi,
  parseAbiItem,
  parseTransaction,
  recoverAddress,
  recoverPublicKey,
  serializeTransaction,
  toEventSelector,
  toFunctionSelector,
} from "viem/utils";
