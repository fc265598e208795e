import { asAddress, createClient } from "fencepost/client";

/** No dependencies and no connection of its own: one for all requests, made when the first of them comes. */
export const fencepost = createClient({
  url: process.env.NODE_URL ?? "http://127.0.0.1:3000",
  apiKey: process.env.NODE_API_KEY,
});
export const signer = asAddress(process.env.SIGNER ?? "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "SIGNER");
